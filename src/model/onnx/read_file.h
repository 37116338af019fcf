// Reads ONNX files.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "model/onnx/file.h"

namespace foretoken {

// `folder`: where the files of external data are looked for; empty: nowhere. InputError names the byte.
OnnxFile parse_onnx(std::string_view content, const std::string& source, const std::filesystem::path& folder = {},
                    const OnnxLimits& limits = {});
OnnxFile read_onnx_file(const std::filesystem::path& path, const OnnxLimits& limits = {});

}  // namespace foretoken
