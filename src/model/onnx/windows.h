// The window that a convolution or a pool moves over its input, one entry for each side.
#pragma once

#include <vector>

#include "model/onnx/node_view.h"

namespace foretoken {

struct WindowLists {
  std::vector<int64_t> strides, dilations;
  std::vector<int64_t> pads;  // before each side, then after each side
};
// As the attributes say; InputError unless there is one entry for each side, within bounds.
WindowLists window_lists(const OnnxNodeView& node, size_t sides);

struct OnnxWindow {
  std::vector<int64_t> kernel, strides, dilations;
  std::vector<int64_t> pads;    // auto_pad and ceil_mode worked in
  std::vector<int64_t> output;  // positions along each side
};
OnnxWindow onnx_window(const OnnxNodeView& node, const std::vector<int64_t>& input, const std::vector<int64_t>& kernel);

}  // namespace foretoken
