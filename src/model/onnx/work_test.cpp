#include "model/onnx/work.h"

#include <gtest/gtest.h>

#include "model/onnx/summary.h"
#include "model/onnx/test_graphs.h"

namespace foretoken::onnx_work_test {

// The only node of a graph, as work and as the first of its kernels.
struct Single {
  Work work;
  std::vector<Operator> operators;
};
Single single(OnnxTestGraph& graph) {
  graph.output(graph.file().body.nodes.back().outputs[0]);
  const OnnxGraph made = graph.graph();
  return {.work = onnx_work(made, made.nodes.back()), .operators = onnx_operators(made, made.nodes.back())};
}

TEST(OnnxWork, a_convolution_has_two_flops_for_each_tap_and_output) {
  OnnxTestGraph graph;
  add_conv(graph, graph.input("x", {2, 16, 28, 28}), 16, 32, 3, 2);
  const Single own = single(graph);
  EXPECT_EQ(own.work.flops.value(), 2.0 * 2 * 32 * 14 * 14 * 16 * 9);
  EXPECT_EQ(own.work.weights_read.value(), 4 * (32 * 16 * 9 + 32));
  EXPECT_EQ(own.work.activations_read.value(), 4 * 2 * 16 * 28 * 28);
  EXPECT_EQ(own.work.written.value(), 4 * 2 * 32 * 14 * 14);
  EXPECT_EQ(std::get<ConvShape>(own.operators.at(0).shape), (ConvShape{.batch = 2,
                                                                       .in_channels = 16,
                                                                       .out_channels = 32,
                                                                       .height = 28,
                                                                       .width = 28,
                                                                       .kernel_height = 3,
                                                                       .kernel_width = 3,
                                                                       .stride = 2,
                                                                       .padding = 1,
                                                                       .scheme = Scheme::fp32}));
}

TEST(OnnxWork, convolutions_with_unequal_sides_keep_their_flops) {
  struct Window {
    std::vector<int64_t> strides, pads, dilations;
  };
  for (const Window& window : {Window{{2, 1}, {0, 0, 0, 0}, {1, 1}}, Window{{1, 1}, {0, 3, 0, 3}, {1, 1}},
                               Window{{2, 2}, {0, 0, 1, 1}, {1, 1}}, Window{{1, 1}, {2, 0, 2, 0}, {2, 1}}}) {
    OnnxTestGraph graph;
    graph.input("x", {1, 4, 20, 30});
    graph.node("Conv", {"x", graph.weight({8, 4, 3, 7})},
               {with("strides", window.strides), with("pads", window.pads), with("dilations", window.dilations)});
    const Single own = single(graph);
    EXPECT_EQ(own.work.flops.value(), 2 * own.work.written.value() / 4 * 4 * 21);
  }
}

TEST(OnnxWork, convolutions_of_one_and_three_sides_keep_their_flops) {
  OnnxTestGraph line;
  line.input("x", {1, 4, 100});
  line.node("Conv", {"x", line.weight({8, 4, 5})});
  EXPECT_EQ(single(line).work.flops.value(), 2.0 * 8 * 96 * 4 * 5);
  OnnxTestGraph volume;
  volume.input("x", {1, 4, 10, 12, 14});
  volume.node("Conv", {"x", volume.weight({8, 4, 3, 3, 3})});
  EXPECT_EQ(single(volume).work.flops.value(), 2.0 * 8 * 8 * 10 * 12 * 4 * 27);
}

TEST(OnnxWork, a_transposed_convolution_multiplies_each_input_with_all_taps) {
  OnnxTestGraph graph;
  graph.input("x", {1, 8, 7, 9});
  graph.node("ConvTranspose", {"x", graph.weight({8, 4, 3, 3})}, {with("strides", {2, 2}), with("pads", {1, 1, 1, 1})});
  EXPECT_EQ(single(graph).work.flops.value(), 2.0 * 8 * 7 * 9 * 4 * 9);
}

TEST(OnnxWork, a_shared_matrix_makes_one_product_and_others_a_batch) {
  OnnxTestGraph shared;
  shared.input("x", {2, 16, 64});
  shared.node("MatMul", {"x", shared.weight({64, 32})});
  EXPECT_EQ(std::get<GemmShape>(single(shared).operators.at(0).shape),
            (GemmShape{.m = 32, .n = 32, .k = 64, .scheme = Scheme::fp32}));
  OnnxTestGraph batch;
  batch.input("q", {2, 4, 16, 8}, OnnxType::float16);
  batch.input("k", {2, 4, 8, 16}, OnnxType::float16);
  batch.node("MatMul", {"q", "k"});
  EXPECT_EQ(std::get<GemmShape>(single(batch).operators.at(0).shape),
            (GemmShape{.m = 16, .n = 16, .k = 8, .batch = 8, .scheme = Scheme::fp16}));
}

TEST(OnnxWork, einsum_is_the_product_it_writes) {
  OnnxTestGraph graph;
  graph.input("q", {2, 4, 16, 8});
  graph.input("k", {2, 4, 20, 8});
  graph.node("Einsum", {"q", "k"}, {with_text("equation", "bhqd,bhkd->bhqk")});
  EXPECT_EQ(std::get<GemmShape>(single(graph).operators.at(0).shape),
            (GemmShape{.m = 16, .n = 20, .k = 8, .batch = 8, .scheme = Scheme::fp32}));
}

TEST(OnnxWork, rows_of_norms_and_softmax_are_those_of_their_axes) {
  OnnxTestGraph norm;
  norm.input("x", {2, 16, 64});
  norm.node("LayerNormalization", {"x", norm.weight({64}), norm.weight({64})}, {with("axis", int64_t{-1})});
  EXPECT_EQ(std::get<NormShape>(single(norm).operators.at(0).shape).rows, 32);
  OnnxTestGraph old(11);
  old.input("x", {2, 16, 64});
  old.node("Softmax", {"x"});
  EXPECT_EQ(std::get<SoftmaxShape>(single(old).operators.at(0).shape).width, 16 * 64);
  OnnxTestGraph recent(13);
  recent.input("x", {2, 16, 64});
  recent.node("Softmax", {"x"});
  EXPECT_EQ(std::get<SoftmaxShape>(single(recent).operators.at(0).shape).width, 64);
}

TEST(OnnxWork, a_table_is_read_by_the_rows_that_are_looked_up) {
  OnnxTestGraph graph;
  graph.input("ids", {2, 16}, OnnxType::int64);
  graph.node("Gather", {graph.weight({30000, 64}), "ids"});
  const Single own = single(graph);
  EXPECT_EQ(own.work.weights_read.value(), 4 * 32 * 64);
  EXPECT_EQ(std::get<EmbeddingShape>(own.operators.at(0).shape).tokens, 32);
}

TEST(OnnxWork, a_pool_looks_at_each_element_under_its_window) {
  OnnxTestGraph graph;
  graph.input("x", {1, 8, 112, 112});
  graph.node("MaxPool", {"x"}, {with("kernel_shape", {3, 3}), with("strides", {2, 2}), with("pads", {1, 1, 1, 1})});
  EXPECT_EQ(single(graph).work.flops.value(), 8.0 * 56 * 56 * 9);
}

double flops_of_products(OnnxTestGraph& graph) {
  double products = 0;
  for (const Operator& own : single(graph).operators) {
    if (!std::holds_alternative<GemmShape>(own.shape)) continue;
    products += count_work(own.shape).flops.value() * static_cast<double>(own.count);
  }
  return products;
}

TEST(OnnxWork, a_recurrent_layer_multiplies_inputs_and_states_whichever_way_its_weights_lie) {
  const std::vector<OnnxAttribute> hidden = {with("hidden_size", int64_t{10})};
  OnnxTestGraph plain;
  plain.input("x", {9, 2, 8});
  plain.node("LSTM", {"x", plain.weight({1, 40, 8}), plain.weight({1, 40, 10})}, hidden);
  EXPECT_EQ(flops_of_products(plain), 2.0 * 9 * 2 * 40 * (8 + 10));

  OnnxTestGraph turned;
  turned.input("x", {9, 2, 8});
  turned.node("DynamicQuantizeLSTM", {"x", turned.weight({1, 8, 40}), turned.weight({1, 10, 40})}, hidden, 1,
              "com.microsoft");
  EXPECT_EQ(flops_of_products(turned), flops_of_products(plain));
}

TEST(OnnxWork, flops_of_a_graph_are_those_of_its_kernels) {
  for (const OnnxTestGraph& network : {block_network(2, 3), transformer_network(2)}) {
    const OnnxGraph graph = network.graph({.batch_is_one = true});
    double flops = 0;
    for (const Operator& own : onnx_operators(graph)) {
      flops += count_work(own.shape).flops.value() * static_cast<double>(own.count);
    }
    EXPECT_DOUBLE_EQ(flops, summarize(graph).flops.value());
  }
}

}  // namespace foretoken::onnx_work_test
