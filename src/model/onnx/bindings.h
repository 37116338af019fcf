// Sizes for the symbolic dimensions of a graph's inputs.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "model/onnx/graph.h"

namespace foretoken {

// The shapes of `inputs`, each with what the options bind; `assumed` takes the names of those that are taken for a
// batch of one. InputError lists every dimension that is left without a size with the flag to give, and a binding that
// no input has.
std::vector<OnnxDims> bound_shapes(std::span<const OnnxValueInfo> inputs, const OnnxOptions& options,
                                   const std::string& source, std::vector<std::string>& assumed);

}  // namespace foretoken
