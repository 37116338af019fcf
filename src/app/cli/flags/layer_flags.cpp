#include "app/cli/flags/layer_flags.h"

#include "accelerator/workload/graph_layers.h"
#include "app/cli/grammar/shipped_file.h"
#include "app/cli/grammar/whole_numbers.h"
#include "base/error.h"
#include "model/onnx/read_graph.h"

namespace foretoken {
namespace {

constexpr Range<int64_t> layer_flag_sizes{.least = 1, .most = 1 << 30};

// `512x4096x4096`: from `least` to `most` numbers.
std::vector<int64_t> sizes_of(const std::string& flag, const std::string& text, size_t least, size_t most,
                              const std::string& expected) {
  std::vector<int64_t> sizes = whole_numbers(flag, text, "x", layer_flag_sizes, expected);
  if (sizes.size() < least || sizes.size() > most) {
    throw InputError({.source = flag, .value = printable(text), .expected = expected});
  }
  return sizes;
}

GemmSize gemm_of(const std::string& text) {
  const auto sizes = sizes_of("--gemm", text, 3, 4, "MxNxK, or MxNxKxBATCH: 512x4096x4096");
  return {.m = sizes[0], .n = sizes[1], .k = sizes[2], .batch = sizes.size() > 3 ? sizes[3] : 1};
}

ConvShape conv_of(const std::string& text) {
  const auto sizes = sizes_of(
      "--conv", text, 5, 7, "IN_CHANNELSxOUT_CHANNELSxHEIGHTxWIDTHxKERNEL, then xSTRIDE and xGROUPS: 3x64x224x224x7x2");
  const int64_t kernel = sizes[4];
  const ConvShape shape{.in_channels = sizes[0],
                        .out_channels = sizes[1],
                        .height = sizes[2],
                        .width = sizes[3],
                        .kernel_height = kernel,
                        .kernel_width = kernel,
                        .stride = sizes.size() > 5 ? sizes[5] : 1,
                        .padding = kernel / 2,
                        .groups = sizes.size() > 6 ? sizes[6] : 1};
  if (shape.in_channels % shape.groups != 0 || shape.out_channels % shape.groups != 0) {
    throw InputError({.source = "--conv", .value = printable(text), .expected = "groups that divide both channels"});
  }
  return shape;
}

std::vector<NetworkLayer> network_of(const Library& library, const std::string& name) {
  const std::filesystem::path file =
      shipped_file("--network", library.directory() / "accelerators" / "networks", name, "a file of layers");
  const Json document = read_json_file(file);
  return read_network_layers(JsonView(document, file.string()));
}

}  // namespace

void LayerFlags::declare(Options& options) {
  options.text("--gemm", gemm, "One multiplication: MxNxK or MxNxKxBATCH");
  options.text("--conv", conv,
               "One convolution: INxOUTxHEIGHTxWIDTHxKERNEL[xSTRIDE[xGROUPS]], padded by half its kernel");
  options.text(
      "--network", network,
      "All layers of a network that ships (foretoken accel --list), of an ONNX file or of a JSON file of layers");
  graph.declare(options);
}

void LayerFlags::declare_batch(Options& options) {
  options.integer("--batch", batch, {.least = 1, .most = 1 << 16}, "Images, or rows of a product, at a time");
}

int LayerFlags::kinds_given() const {
  return !gemm.empty() + !conv.empty() + !network.empty();
}

std::vector<VectorWork> LayerFlags::work_beside() const {
  if (!is_graph_file(network)) return {};
  return vector_work(graph_operators(read_onnx(network, graph.options())));
}

std::vector<NetworkLayer> LayerFlags::layers(const Library& library) const {
  if (kinds_given() != 1) {
    throw InputError({.source = "--gemm, --conv, --network",
                      .value = kinds_given() == 0 ? "none of them" : "several of them",
                      .expected = "one of them: --gemm 512x4096x4096, --conv 3x64x224x224x7x2 or --network resnet50"});
  }
  if (graph.given() && !is_graph_file(network)) {
    throw InputError({.source = "--bind", .expected = "a graph file: --network FILE.onnx"});
  }
  std::vector<NetworkLayer> layers;
  if (!gemm.empty()) layers = {{.name = "gemm", .work = gemm_of(gemm)}};
  if (!conv.empty()) layers = {{.name = "convolution", .work = conv_of(conv)}};
  if (is_graph_file(network)) {
    layers = graph_layers(read_onnx(network, graph.options()));
  } else if (!network.empty()) {
    layers = network_of(library, network);
  }
  for (NetworkLayer& layer : layers) layer = with_batch(std::move(layer), batch);
  return layers;
}

}  // namespace foretoken
