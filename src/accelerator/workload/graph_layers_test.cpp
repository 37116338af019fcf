#include "accelerator/workload/graph_layers.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "model/onnx/test_graphs.h"
#include "model/onnx/work.h"

namespace foretoken::graph_layers_test {

double multiplications(const std::vector<NetworkLayer>& layers) {
  double sum = 0;
  for (const NetworkLayer& layer : layers) sum += operations(layer_problem(layer)) * static_cast<double>(layer.count);
  return sum;
}

TEST(GraphLayers, every_multiplication_of_the_graph_is_in_a_layer) {
  OnnxTestGraph graph;
  graph.input("x", {2, 16, 28, 28});
  const std::string wide = add_conv(graph, "x", 16, 32, 3, 2);
  const std::string flat = graph.node("Flatten", {graph.node("GlobalAveragePool", {wide})});
  graph.output(graph.node("Gemm", {flat, graph.weight({32, 10})}));
  const OnnxGraph made = graph.graph();
  double flops = 0;
  for (const OnnxNode& node : made.nodes) {
    if (node.operation == "Conv" || node.operation == "Gemm") flops += onnx_work(made, node).flops.value();
  }
  const std::vector<NetworkLayer> layers = graph_layers(made);
  ASSERT_EQ(layers.size(), 2U);
  EXPECT_EQ(2 * multiplications(layers), flops);
  EXPECT_FALSE(layers[1].from_previous) << "a pool stands between them";
}

TEST(GraphLayers, a_layer_follows_another_where_only_an_activation_stands_between_and_nobody_else_reads) {
  for (const bool also_read : {false, true}) {
    OnnxTestGraph graph;
    graph.input("x", {1, 8, 14, 14});
    const std::string first = graph.node("Relu", {add_conv(graph, "x", 8, 8, 1, 1)});
    const std::string second = add_conv(graph, first, 8, 8, 3, 1);
    graph.output(also_read ? graph.node("Add", {first, second}) : second);
    const std::vector<NetworkLayer> layers = graph_layers(graph.graph());
    ASSERT_EQ(layers.size(), 2U);
    EXPECT_FALSE(layers[0].from_previous);
    EXPECT_EQ(layers[1].from_previous, !also_read);
  }
}

TEST(GraphLayers, values_are_weighed_by_the_scores_before_them) {
  for (const bool has_softmax : {true, false}) {
    OnnxTestGraph graph;
    graph.input("q", {4, 32, 8});
    graph.input("k", {4, 8, 32});
    graph.input("v", {4, 32, 8});
    graph.input("mask", {1, 32, 32});
    std::string scores = graph.node("MatMul", {"q", "k"});
    scores = graph.node("Add", {scores, "mask"});
    if (has_softmax) scores = graph.node("Softmax", {scores});
    graph.output(graph.node("MatMul", {scores, "v"}));
    const std::vector<NetworkLayer> layers = graph_layers(graph.graph());
    ASSERT_EQ(layers.size(), 2U);
    EXPECT_EQ(layers[1].from_previous, has_softmax);
  }
}

TEST(GraphLayers, a_graph_that_multiplies_nothing_is_refused) {
  OnnxTestGraph graph;
  graph.input("x", {4});
  graph.output(graph.node("Relu", {"x"}));
  EXPECT_THROW(graph_layers(graph.graph()), InputError);
}

}  // namespace foretoken::graph_layers_test
