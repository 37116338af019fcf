#include "accelerator/workload/layer_list.h"

#include "accelerator/workload/operator_problems.h"

namespace foretoken {
namespace {

bool same_sizes(const Problem& a, const Problem& b) {
  if (a.dimensions.size() != b.dimensions.size() || a.tensors.size() != b.tensors.size()) return false;
  for (size_t d = 0; d < a.dimensions.size(); ++d) {
    if (a.dimensions[d].name != b.dimensions[d].name || a.dimensions[d].size != b.dimensions[d].size) return false;
  }
  for (size_t t = 0; t < a.tensors.size(); ++t) {
    const auto& left = a.tensors[t];
    const auto& right = b.tensors[t];
    if (left.name != right.name || left.ranks.size() != right.ranks.size()) return false;
    for (size_t r = 0; r < left.ranks.size(); ++r) {
      if (left.ranks[r].size() != right.ranks[r].size()) return false;
      for (size_t i = 0; i < left.ranks[r].size(); ++i) {
        if (left.ranks[r][i].dimension != right.ranks[r][i].dimension) return false;
        if (left.ranks[r][i].coefficient != right.ranks[r][i].coefficient) return false;
      }
    }
  }
  return true;
}

constexpr Range<int64_t> sizes{.least = 1, .most = int64_t{1} << 30};

Problem read_conv_layer(const JsonView& view) {
  view.allow_only({"batch", "in_channels", "out_channels", "height", "width", "kernel_height", "kernel_width", "stride",
                   "padding", "dilation", "groups"});
  const auto size = [&](std::string_view key, int64_t otherwise) {
    const auto found = view.find(key);
    return found ? found->integer(sizes) : otherwise;
  };
  ConvShape shape{.batch = size("batch", 1),
                  .in_channels = view.at("in_channels").integer(sizes),
                  .out_channels = view.at("out_channels").integer(sizes),
                  .height = view.at("height").integer(sizes),
                  .width = size("width", view.at("height").integer(sizes)),
                  .kernel_height = view.at("kernel_height").integer(sizes),
                  .kernel_width = size("kernel_width", view.at("kernel_height").integer(sizes)),
                  .stride = size("stride", 1),
                  .dilation = size("dilation", 1),
                  .groups = size("groups", 1)};
  if (const auto padding = view.find("padding")) shape.padding = padding->integer({.least = 0, .most = 1 << 20});
  if (shape.in_channels % shape.groups != 0 || shape.out_channels % shape.groups != 0) {
    view.fail("groups that divide both numbers of channels");
  }
  if (shape.height + 2 * shape.padding < shape.dilation * (shape.kernel_height - 1) + 1 ||
      shape.width + 2 * shape.padding < shape.dilation * (shape.kernel_width - 1) + 1) {
    view.fail("a kernel that fits into the padded input");
  }
  return operator_problems(shape).front().problem;
}

Problem read_gemm_layer(const JsonView& view) {
  view.allow_only({"m", "n", "k", "batch"});
  GemmSize size{.m = view.at("m").integer(sizes), .n = view.at("n").integer(sizes), .k = view.at("k").integer(sizes)};
  if (const auto batch = view.find("batch")) size.batch = batch->integer(sizes);
  return gemm_problem(size);
}

}  // namespace

std::vector<AcceleratorLayer> merged_layers(std::vector<AcceleratorLayer> layers) {
  std::vector<AcceleratorLayer> merged;
  for (AcceleratorLayer& layer : layers) {
    AcceleratorLayer* found = nullptr;
    for (AcceleratorLayer& other : merged) {
      if (same_sizes(other.problem, layer.problem)) found = &other;
    }
    if (found != nullptr) {
      found->count += layer.count;
    } else {
      merged.push_back(std::move(layer));
    }
  }
  return merged;
}

std::vector<AcceleratorLayer> layers_of(std::span<const Operator> operators) {
  std::vector<AcceleratorLayer> layers;
  for (const Operator& own : operators) {
    for (CountedProblem& part : operator_problems(own.shape)) {
      layers.push_back(
          {.name = own.name, .problem = std::move(part.problem), .count = part.count * static_cast<double>(own.count)});
    }
  }
  return merged_layers(std::move(layers));
}

std::vector<AcceleratorLayer> read_layer_list(const JsonView& document) {
  document.allow_only({"name", "source", "layers"});
  std::vector<AcceleratorLayer> layers;
  for (const JsonView& item : document.at("layers").items()) {
    item.allow_only({"name", "count", "from_previous", "conv", "gemm"});
    if (item.has("conv") == item.has("gemm")) item.fail("a layer with either `conv` or `gemm`");
    AcceleratorLayer layer{.name = item.at("name").string()};
    layer.problem = item.has("conv") ? read_conv_layer(item.at("conv")) : read_gemm_layer(item.at("gemm"));
    layer.problem.name = layer.name;
    if (const auto count = item.find("count")) layer.count = static_cast<double>(count->integer(sizes));
    if (const auto follows = item.find("from_previous")) layer.from_previous = follows->boolean();
    if (layer.from_previous && layers.empty()) item.at("from_previous").fail("a layer before this one");
    layers.push_back(std::move(layer));
  }
  if (layers.empty()) document.at("layers").fail("at least one layer");
  return layers;
}

}  // namespace foretoken
