#include "model/onnx/windows.h"

#include <algorithm>

#include <fmt/format.h>

namespace foretoken {

WindowLists window_lists(const OnnxNodeView& node, size_t sides) {
  WindowLists lists{.strides = node.list_attribute("strides", std::vector<int64_t>(sides, 1)),
                    .dilations = node.list_attribute("dilations", std::vector<int64_t>(sides, 1)),
                    .pads = node.list_attribute("pads", std::vector<int64_t>(2 * sides, 0))};
  constexpr int64_t most = int64_t{1} << 20;
  const auto check = [&](const std::vector<int64_t>& list, std::string_view name, size_t count, int64_t least) {
    const bool inside =
        std::all_of(list.begin(), list.end(), [&](int64_t value) { return value >= least && value <= most; });
    if (list.size() == count && inside) return;
    node.fail(fmt::format("{} {}", name, dims_text(list)), fmt::format("{} numbers from {} to 2^20", count, least));
  };
  check(lists.strides, "strides", sides, 1);
  check(lists.dilations, "dilations", sides, 1);
  check(lists.pads, "pads", 2 * sides, -most);
  return lists;
}

// floor or ceil((input + pads - dilation (kernel-1) - 1) / stride) + 1; SAME: ceil(input / stride), padded to fit
// (onnx/docs/Operators.md, Conv and MaxPool).
OnnxWindow onnx_window(const OnnxNodeView& node, const std::vector<int64_t>& input,
                       const std::vector<int64_t>& kernel) {
  const size_t sides = input.size();
  WindowLists lists = window_lists(node, sides);
  OnnxWindow window{.kernel = kernel,
                    .strides = std::move(lists.strides),
                    .dilations = std::move(lists.dilations),
                    .pads = std::move(lists.pads)};
  const std::string automatic = node.text_attribute("auto_pad", "NOTSET");
  const bool ceil = node.attribute("ceil_mode", 0) != 0;
  for (size_t i = 0; i < sides; ++i) {
    if (kernel[i] < 1 || kernel[i] > int64_t{1} << 40) node.fail(dims_text(kernel), "a window of 1 or more");
    const int64_t reach = window.dilations[i] * (kernel[i] - 1) + 1;
    int64_t& before = window.pads[i];
    int64_t& after = window.pads[i + sides];
    if (automatic.starts_with("SAME")) {
      const int64_t positions = (input[i] + window.strides[i] - 1) / window.strides[i];
      const int64_t pad = std::max<int64_t>(0, (positions - 1) * window.strides[i] + reach - input[i]);
      before = automatic == "SAME_LOWER" ? pad - pad / 2 : pad / 2;
      after = pad - before;
    } else if (automatic == "VALID") {
      before = after = 0;
    }
    const int64_t span = input[i] + before + after - reach;
    if (span < 0) {
      node.fail(fmt::format("a window of {} over {} with pads {} and {}", reach, input[i], before, after),
                "an input that the window fits into");
    }
    int64_t positions = span / window.strides[i] + 1;
    // With ceil_mode the last window may hang over the end, but must start inside the input or the first pad.
    if (ceil && span % window.strides[i] != 0 && positions * window.strides[i] < input[i] + before) ++positions;
    window.output.push_back(positions);
  }
  return window;
}

}  // namespace foretoken
