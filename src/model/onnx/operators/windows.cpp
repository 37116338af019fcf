#include "model/onnx/windows.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "model/onnx/operators/folding.h"
#include "model/onnx/operators/rules.h"

namespace foretoken::onnx_rules {
namespace {

void put_convolution(NodeInference& node, size_t weight_input, OnnxType type) {
  const OnnxDims& input = node.dims(0);
  const OnnxDims& weight = node.dims(weight_input);
  if (input.size() < 3 || weight.size() != input.size()) {
    node.fail(fmt::format("{} with weights {}", dims_text(input), dims_text(weight)),
              "batch, channels and one or more sides, and weights of as many dimensions");
  }
  const int64_t groups = node.attribute("group", 1);
  if (groups < 1 || weight[1] > most_onnx_elements / groups || weight[1] * groups != input[1] ||
      weight[0] % groups != 0) {
    node.fail(fmt::format("{} with weights {} in {} groups", dims_text(input), dims_text(weight), groups),
              "as many channels as the weights take");
  }
  const OnnxWindow window = onnx_window(node, {input.begin() + 2, input.end()}, {weight.begin() + 2, weight.end()});
  OnnxDims dims{input[0], weight[0]};
  dims.insert(dims.end(), window.output.begin(), window.output.end());
  node.output(0, type, std::move(dims));
}

// So that a side times its stride stays within 64 bits.
void expect_side(const OnnxNodeView& node, int64_t side) {
  if (side < 0 || side > int64_t{1} << 40) node.fail(fmt::format("a side of {}", side), "at most 2^40");
}

}  // namespace

void convolution(NodeInference& node) {
  put_convolution(node, 1, node.type(0));
}

// x, its scale and zero point, weights, their scale and zero point, scale and zero point of the output, bias
void quantized_convolution(NodeInference& node) {
  put_convolution(node, 3, node.type(7) == OnnxType::undefined ? node.type(0) : node.type(7));
}

void integer_convolution(NodeInference& node) {
  put_convolution(node, 1, OnnxType::int32);
}

// output = stride (input - 1) + output_padding + dilation (kernel - 1) + 1 - pads (onnx/docs/Operators.md)
void transposed_convolution(NodeInference& node) {
  const OnnxDims& input = node.dims(0);
  const OnnxDims& weight = node.dims(1);
  const int64_t groups = node.attribute("group", 1);
  if (input.size() < 3 || weight.size() != input.size() || weight[0] != input[1] || groups < 1 || groups > 1 << 16) {
    node.fail(fmt::format("{} with weights {}", dims_text(input), dims_text(weight)),
              "as many channels as the weights take");
  }
  const size_t sides = input.size() - 2;
  const WindowLists lists = window_lists(node, sides);
  const std::vector<int64_t> extra = node.list_attribute("output_padding", std::vector<int64_t>(sides, 0));
  const std::vector<int64_t> wanted = node.list_attribute("output_shape");
  const bool same = node.text_attribute("auto_pad", "NOTSET").starts_with("SAME");
  if (extra.size() != sides) node.fail("output_padding", "one number for each side");
  for (const int64_t own : extra) expect_side(node, own);
  OnnxDims dims{input[0], weight[1] * groups};
  for (size_t i = 0; i < sides; ++i) {
    expect_side(node, input[i + 2]);
    expect_side(node, weight[i + 2]);
    const int64_t pads = lists.pads[i] + lists.pads[i + sides];
    int64_t size =
        lists.strides[i] * (input[i + 2] - 1) + extra[i] + lists.dilations[i] * (weight[i + 2] - 1) + 1 - pads;
    if (same) size = input[i + 2] * lists.strides[i];
    if (!wanted.empty()) size = wanted[wanted.size() == sides ? i : std::min(i + 2, wanted.size() - 1)];
    if (size < 0) node.fail(fmt::format("an output side of {}", size), "0 or more");
    dims.push_back(size);
  }
  node.output(0, node.type(0), std::move(dims));
}

void pool(NodeInference& node) {
  const OnnxDims& input = node.dims(0);
  const std::vector<int64_t> kernel = node.list_attribute("kernel_shape");
  if (input.size() < 3 || kernel.size() != input.size() - 2) {
    node.fail(fmt::format("{} with a window of {}", dims_text(input), dims_text(kernel)),
              "one side for each dimension");
  }
  const OnnxWindow window = onnx_window(node, {input.begin() + 2, input.end()}, kernel);
  OnnxDims dims{input[0], input[1]};
  dims.insert(dims.end(), window.output.begin(), window.output.end());
  node.output(0, node.type(0), dims);
  node.output(1, OnnxType::int64, dims);  // MaxPool: where the largest lay
}

void global_pool(NodeInference& node) {
  if (node.rank(0) < 3) node.fail(dims_text(node.dims(0)), "batch, channels and one or more sides");
  OnnxDims dims = node.dims(0);
  for (size_t i = 2; i < dims.size(); ++i) dims[i] = 1;
  node.output(0, node.type(0), std::move(dims));
}

void max_unpool(NodeInference& node) {
  if (const std::optional<std::vector<int64_t>> wanted = node.integers(2)) {
    node.output(0, node.type(0), *wanted);
    return;
  }
  const OnnxDims& input = node.dims(0);
  const std::vector<int64_t> kernel = node.list_attribute("kernel_shape");
  if (input.size() < 3 || kernel.size() != input.size() - 2) node.fail(dims_text(input), "one side for each dimension");
  const WindowLists lists = window_lists(node, kernel.size());
  OnnxDims dims = input;
  for (size_t i = 0; i < kernel.size(); ++i) {
    expect_side(node, input[i + 2]);
    expect_side(node, kernel[i]);
    dims[i + 2] = std::max<int64_t>(
        0, (input[i + 2] - 1) * lists.strides[i] - lists.pads[i] - lists.pads[i + kernel.size()] + kernel[i]);
  }
  node.output(0, node.type(0), std::move(dims));
}

namespace {

// Scales of Resize and Upsample, from where each opset keeps them.
const OnnxValues* scales_of(const OnnxNodeView& node) {
  const bool early = node.node().operation == "Upsample" || node.opset() == 10;
  return node.values(early ? 1 : 2);
}

}  // namespace

void resize(NodeInference& node) {
  const OnnxDims& input = node.dims(0);
  OnnxDims dims = input;
  std::vector<int64_t> axes = node.list_attribute("axes");
  if (axes.empty()) {
    for (size_t i = 0; i < input.size(); ++i) axes.push_back(static_cast<int64_t>(i));
  }
  if (const std::optional<std::vector<int64_t>> sizes = node.integers(3); sizes && !sizes->empty()) {
    if (sizes->size() != axes.size()) node.fail(fmt::format("{} sizes", sizes->size()), "one for each axis");
    for (size_t i = 0; i < axes.size(); ++i) dims[node.axis(axes[i], dims.size())] = (*sizes)[i];
    node.output(0, node.type(0), std::move(dims));
    return;
  }
  std::vector<double> scales;
  if (const OnnxValues* known = scales_of(node)) scales = known->reals;
  if (const OnnxAttribute* given = node.node().attribute("scales")) {
    if (const auto* list = std::get_if<std::vector<double>>(&given->value)) scales = *list;
  }
  if (scales.empty()) return;
  if (scales.size() != axes.size()) node.fail(fmt::format("{} scales", scales.size()), "one for each axis");
  for (size_t i = 0; i < axes.size(); ++i) {
    int64_t& size = dims[node.axis(axes[i], dims.size())];
    const double scaled = std::floor(static_cast<double>(size) * scales[i]);
    if (!(scaled >= 0 && scaled <= static_cast<double>(most_onnx_elements))) {
      node.fail(fmt::format("a scale of {}", scales[i]), "0 or more, and at most 2^46 elements");
    }
    size = static_cast<int64_t>(scaled);
  }
  node.output(0, node.type(0), std::move(dims));
}

void roi_align(NodeInference& node) {
  if (node.rank(0) != 4 || node.rank(1) != 2) node.fail(dims_text(node.dims(0)), "images of four dimensions and boxes");
  node.output(
      0, node.type(0),
      {node.dims(1)[0], node.dims(0)[1], node.attribute("output_height", 1), node.attribute("output_width", 1)});
}

void grid_sample(NodeInference& node) {
  const OnnxDims& input = node.dims(0);
  const OnnxDims& grid = node.dims(1);
  if (input.size() < 3 || grid.size() != input.size()) node.fail(dims_text(grid), "a grid for each image");
  OnnxDims dims{input[0], input[1]};
  dims.insert(dims.end(), grid.begin() + 1, grid.end() - 1);
  node.output(0, node.type(0), std::move(dims));
}

}  // namespace foretoken::onnx_rules
