// Writes ONNX files: fixtures of tests, and graphs that other tools are given.
#pragma once

#include <string>

#include "model/onnx/file.h"

namespace foretoken {

// The bytes of a model that reads back as the same file. A tensor whose values are not kept is written without content:
// its shape is all that is known of it.
std::string onnx_text(const OnnxFile& file);

}  // namespace foretoken
