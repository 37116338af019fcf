// Small constants, element by element.
#pragma once

#include <functional>
#include <vector>

#include "model/onnx/node_inference.h"

namespace foretoken::onnx_rules {

// Row-major: how far apart neighbours along each axis lie.
std::vector<int64_t> strides_of(const OnnxDims& dims);

// Calls `visit` with the index of every element of `dims` in row-major order; the position along each axis and the
// element's own number.
void for_each_element(const OnnxDims& dims,
                      const std::function<void(const std::vector<int64_t>& at, int64_t number)>& visit);

// For every element of `output`, the number of the element of a tensor of `input`'s shape that is broadcast to it.
std::vector<int64_t> broadcast_sources(const OnnxDims& input, const OnnxDims& output);

// The elements of `values` at `places`, which are within it.
OnnxValues picked(const OnnxValues& values, const std::vector<int64_t>& places);

// The one element that each of `values` is, as a real number.
double real_at(const OnnxValues& values, size_t place);

// Sets output 0 to the elements of input `input` at the numbers that `place` gives for each element of `dims`; nothing
// where the input's elements are not known. The output's shape is set before.
void pick_values(NodeInference& node, size_t input, const OnnxDims& dims,
                 const std::function<int64_t(const std::vector<int64_t>& at)>& place, size_t output = 0);

}  // namespace foretoken::onnx_rules
