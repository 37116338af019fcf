#include "accelerator/workload/network_layer.h"

#include <fmt/format.h>

#include "accelerator/workload/operator_problems.h"
#include "base/error.h"
#include "base/range.h"
#include "model/work.h"

namespace foretoken {
namespace {

constexpr Range<int64_t> layer_sizes_allowed{.least = 1, .most = int64_t{1} << 30};

ConvShape read_conv_layer(const JsonView& view) {
  view.allow_only({"batch", "in_channels", "out_channels", "height", "width", "kernel_height", "kernel_width", "stride",
                   "padding", "dilation", "groups"});
  const auto size = [&](std::string_view key, int64_t otherwise) {
    const auto found = view.find(key);
    return found ? found->integer(layer_sizes_allowed) : otherwise;
  };
  ConvShape shape{.batch = size("batch", 1),
                  .in_channels = view.at("in_channels").integer(layer_sizes_allowed),
                  .out_channels = view.at("out_channels").integer(layer_sizes_allowed),
                  .height = view.at("height").integer(layer_sizes_allowed),
                  .width = size("width", view.at("height").integer(layer_sizes_allowed)),
                  .kernel_height = view.at("kernel_height").integer(layer_sizes_allowed),
                  .kernel_width = size("kernel_width", view.at("kernel_height").integer(layer_sizes_allowed)),
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
  return shape;
}

GemmSize read_gemm_layer(const JsonView& view) {
  view.allow_only({"m", "n", "k", "batch"});
  GemmSize size{.m = view.at("m").integer(layer_sizes_allowed),
                .n = view.at("n").integer(layer_sizes_allowed),
                .k = view.at("k").integer(layer_sizes_allowed)};
  if (const auto batch = view.find("batch")) size.batch = batch->integer(layer_sizes_allowed);
  return size;
}

}  // namespace

std::vector<NetworkLayer> read_network_layers(const JsonView& document) {
  document.allow_only({"name", "source", "layers"});
  std::vector<NetworkLayer> layers;
  for (const JsonView& item : document.at("layers").items()) {
    item.allow_only({"name", "count", "from_previous", "conv", "gemm"});
    if (item.has("conv") == item.has("gemm")) item.fail("a layer with either `conv` or `gemm`");
    NetworkLayer layer{.name = item.at("name").string()};
    if (item.has("conv")) {
      layer.work = read_conv_layer(item.at("conv"));
    } else {
      layer.work = read_gemm_layer(item.at("gemm"));
    }
    if (const auto count = item.find("count")) layer.count = count->integer(layer_sizes_allowed);
    if (const auto follows = item.find("from_previous")) layer.from_previous = follows->boolean();
    if (layer.from_previous && layers.empty()) item.at("from_previous").fail("a layer before this one");
    layers.push_back(std::move(layer));
  }
  if (layers.empty()) document.at("layers").fail("at least one layer");
  return layers;
}

NetworkLayer with_batch(NetworkLayer layer, int64_t batch) {
  int64_t* rows = nullptr;
  if (auto* conv = std::get_if<ConvShape>(&layer.work)) {
    rows = &conv->batch;
  } else {
    auto& gemm = std::get<GemmSize>(layer.work);
    rows = gemm.batch > 1 ? &gemm.batch : &gemm.m;
  }
  if (*rows > layer_sizes_allowed.most / batch) {
    throw InputError({.source = printable(layer.name),
                      .path = "batch",
                      .value = fmt::format("{} times {}", batch, *rows),
                      .expected = range_text(layer_sizes_allowed)});
  }
  *rows *= batch;
  return layer;
}

Problem layer_problem(const NetworkLayer& layer) {
  const auto* conv = std::get_if<ConvShape>(&layer.work);
  Problem problem =
      conv != nullptr ? operator_problems(*conv).front().problem : gemm_problem(std::get<GemmSize>(layer.work));
  problem.name = layer.name;
  return problem;
}

ConvOutput conv_output(const ConvShape& shape) {
  return {.height = convolved_size(shape.height, shape.kernel_height, shape.stride, shape.padding, shape.dilation),
          .width = convolved_size(shape.width, shape.kernel_width, shape.stride, shape.padding, shape.dilation)};
}

void refuse_dilation(const NetworkLayer& layer) {
  const auto* conv = std::get_if<ConvShape>(&layer.work);
  if (conv == nullptr || conv->dilation == 1) return;
  throw InputError({.source = printable(layer.name),
                    .path = "dilation",
                    .value = std::to_string(conv->dilation),
                    .expected = "1: dilated convolutions are not supported"});
}

}  // namespace foretoken
