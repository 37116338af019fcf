// Small graphs for tests, benchmarks and the fuzzer: ready-made blocks.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "model/onnx/builder.h"
#include "model/onnx/graph.h"
#include "model/onnx/read_graph.h"

namespace foretoken {

class OnnxTestGraph : public OnnxBuilder {
 public:
  explicit OnnxTestGraph(int64_t opset = 17) : OnnxBuilder("test", opset) {}

  OnnxGraph graph(const OnnxOptions& options = {}) const { return import_onnx(file(), options); }
};

inline OnnxAttribute with_body(std::string name, OnnxBody body) {
  return {.name = std::move(name), .value = std::make_shared<const OnnxBody>(std::move(body))};
}

inline std::string add_conv(OnnxTestGraph& graph, const std::string& x, int64_t in, int64_t out, int64_t kernel,
                            int64_t stride = 1, int64_t groups = 1) {
  const int64_t pad = kernel / 2;
  return graph.node("Conv", {x, graph.weight({out, in / groups, kernel, kernel}), graph.weight({out})},
                    {with("kernel_shape", {kernel, kernel}), with("strides", {stride, stride}),
                     with("pads", {pad, pad, pad, pad}), with("group", groups)});
}

// Two 3x3 convolutions around which the input goes.
inline std::string add_residual_block(OnnxTestGraph& graph, const std::string& x, int64_t channels) {
  const std::string first = graph.node("Relu", {add_conv(graph, x, channels, channels, 3)});
  return graph.node("Relu", {graph.node("Add", {add_conv(graph, first, channels, channels, 3), x})});
}

// Expand, depthwise, project (MobileNetV2).
inline std::string add_inverted_residual(OnnxTestGraph& graph, const std::string& x, int64_t channels, int64_t factor) {
  const int64_t wide = channels * factor;
  const std::string expanded = graph.node("Relu", {add_conv(graph, x, channels, wide, 1)});
  const std::string filtered = graph.node("Relu", {add_conv(graph, expanded, wide, wide, 3, 1, wide)});
  return graph.node("Add", {add_conv(graph, filtered, wide, channels, 1), x});
}

// Attention and a feed-forward layer with shapes worked out in the graph, as exporters write them.
inline std::string add_transformer_block(OnnxTestGraph& graph, const std::string& x, int64_t width, int64_t heads) {
  const std::string shape = graph.node("Shape", {x});
  const auto size = [&](int64_t axis) {
    const std::string one = graph.node("Gather", {shape, graph.integer(axis)}, {with("axis", 0)});
    return graph.node("Unsqueeze", {one, graph.integers({0})});
  };
  const std::string split_shape = graph.node(
      "Concat", {size(0), size(1), graph.integers({heads}), graph.integers({width / heads})}, {with("axis", 0)});
  const auto project = [&](std::vector<int64_t> order) {
    const std::string flat = graph.node("MatMul", {x, graph.weight({width, width})});
    return graph.node("Transpose", {graph.node("Reshape", {flat, split_shape})}, {with("perm", std::move(order))});
  };
  const std::string scores = graph.node("MatMul", {project({0, 2, 1, 3}), project({0, 2, 3, 1})});
  const std::string mixed =
      graph.node("MatMul", {graph.node("Softmax", {scores}, {with("axis", -1)}), project({0, 2, 1, 3})});
  const std::string joined = graph.node(
      "Reshape", {graph.node("Transpose", {mixed}, {with("perm", {0, 2, 1, 3})}), graph.integers({0, 0, width})});
  const std::string residual = graph.node("Add", {graph.node("MatMul", {joined, graph.weight({width, width})}), x});
  const std::string normal = graph.node("LayerNormalization", {residual, graph.weight({width}), graph.weight({width})});
  const std::string up = graph.node("MatMul", {normal, graph.weight({width, 4 * width})});
  const std::string act = graph.node("Gelu", {up}, {}, 1, "com.microsoft");
  return graph.node("Add", {graph.node("MatMul", {act, graph.weight({4 * width, width})}), normal});
}

// A picture classifier of such blocks, with a symbolic batch.
inline OnnxTestGraph block_network(int residual, int inverted) {
  OnnxTestGraph graph;
  std::string x = add_conv(graph, graph.input("image", {-1, 3, 32, 32}), 3, 16, 3, 2);
  for (int i = 0; i < residual; ++i) x = add_residual_block(graph, x, 16);
  for (int i = 0; i < inverted; ++i) x = add_inverted_residual(graph, x, 16, 6);
  x = graph.node("Flatten", {graph.node("GlobalAveragePool", {x})});
  graph.output(graph.node("Gemm", {x, graph.weight({10, 16}), graph.weight({10})}, {with("transB", int64_t{1})}));
  return graph;
}

inline OnnxTestGraph transformer_network(int blocks, int64_t width = 64, int64_t heads = 4) {
  OnnxTestGraph graph;
  std::string x = graph.input("tokens", {-1, 16, width});
  for (int i = 0; i < blocks; ++i) x = add_transformer_block(graph, x, width, heads);
  graph.output(x);
  return graph;
}

}  // namespace foretoken
