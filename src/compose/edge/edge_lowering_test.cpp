#include "compose/edge/edge_lowering.h"

#include <gtest/gtest.h>

#include "model/onnx/test_graphs.h"
#include "model/onnx/work.h"

namespace foretoken::edge_lowering_test {

FusionRules shipped_rules() {
  return read_fusion_rules(FORETOKEN_SOURCE_DIR "/data/edge/fusion/onnxruntime.json");
}

std::vector<EdgeKernel> kernels_of(const OnnxGraph& graph) {
  std::vector<EdgeKernel> kernels;
  for (const EdgeStep& step : lower_edge(graph, shipped_rules()).steps) {
    for (const EdgeCall& call : step.calls) kernels.push_back(call.kernel);
  }
  return kernels;
}

// One node of an operator on the given inputs.
EdgeKernel only_kernel(const OnnxTestGraph& test) {
  const std::vector<EdgeKernel> kernels = kernels_of(test.graph());
  EXPECT_EQ(kernels.size(), 1U);
  return kernels.at(0);
}

TEST(EdgeLowering, every_node_stands_in_one_step_and_no_work_is_lost) {
  for (const OnnxTestGraph& test : {block_network(3, 3), transformer_network(2)}) {
    const OnnxGraph graph = test.graph({.bind = {{"batch", 2}}});
    const EdgeLowering lowering = lower_edge(graph, shipped_rules());
    std::vector<int> seen(graph.nodes.size(), 0);
    double flops = 0, products = 0;
    for (const EdgeStep& step : lowering.steps) {
      for (const int64_t node : step.nodes) ++seen[static_cast<size_t>(node)];
      flops += step.flops.value();
      for (const EdgeCall& call : step.calls) {
        EdgeKernel kernel = call.kernel;
        if (auto* conv = std::get_if<ConvolutionSizes>(&kernel.sizes)) {
          conv->activation = EdgeActivation::none;
          conv->accumulates = false;
        }
        if (!std::holds_alternative<TensorSizes>(kernel.sizes)) products += edge_work(kernel).flops.value();
      }
    }
    double wanted = 0, wanted_products = 0;
    for (size_t i = 0; i < graph.nodes.size(); ++i) {
      EXPECT_EQ(seen[i], graph.nodes[i].is_folded ? 0 : 1) << graph.nodes[i].name;
      wanted += onnx_work(graph, graph.nodes[i]).flops.value();
      for (const Operator& own : onnx_operators(graph, graph.nodes[i])) {
        const bool multiplies =
            std::holds_alternative<ConvShape>(own.shape) || std::holds_alternative<GemmShape>(own.shape);
        if (multiplies) wanted_products += count_work(own.shape).flops.value() * static_cast<double>(own.count);
      }
    }
    EXPECT_DOUBLE_EQ(flops, wanted);
    EXPECT_DOUBLE_EQ(products, wanted_products);
  }
}

TEST(EdgeLowering, a_residual_block_is_two_convolutions) {
  OnnxTestGraph test;
  test.output(add_residual_block(test, test.input("x", {1, 16, 8, 8}), 16));
  const std::vector<EdgeKernel> kernels = kernels_of(test.graph());
  ASSERT_EQ(kernels.size(), 2U);
  EXPECT_EQ(edge_parameters(kernels[0]), "ic=16;oc=16;h=8;oh=8;k=3;s=1;act=relu");
  EXPECT_EQ(edge_parameters(kernels[1]), "ic=16;oc=16;h=8;oh=8;k=3;s=1;act=relu;sum=1");
}

TEST(EdgeLowering, products_are_told_apart_by_their_right_hand_side_and_rows) {
  const auto product = [](const OnnxDims& left, const OnnxDims& right, bool constant) {
    OnnxTestGraph test;
    const std::string x = test.input("x", left), y = constant ? test.weight(right) : test.input("y", right);
    test.output(test.node("MatMul", {x, y}));
    const EdgeKernel kernel = only_kernel(test);
    return std::string(edge_kind_name(kernel.kind)) + " " + edge_parameters(kernel);
  };
  EXPECT_EQ(product({2, 5, 8}, {8, 3}, true), "linear m=10;k=8;n=3");
  EXPECT_EQ(product({1, 8}, {8, 3}, true), "gemm1 m=1;k=8;n=3");
  EXPECT_EQ(product({2, 4, 5, 8}, {2, 4, 8, 3}, false), "bmm b=8;m=5;k=8;n=3");
  EXPECT_EQ(product({6, 5, 8}, {1, 8, 3}, false), "bmm b=1;m=30;k=8;n=3");
}

TEST(EdgeLowering, grouped_dilated_and_flat_windows_keep_their_sizes) {
  OnnxTestGraph test;
  const std::string x = test.input("x", {2, 8, 10, 20});
  test.output(test.node("Conv", {x, test.weight({16, 2, 1, 3})},
                        {with("group", int64_t{4}), with("dilations", {1, 2}), with("pads", {0, 2, 0, 2})}));
  const auto sizes = std::get<ConvolutionSizes>(only_kernel(test).sizes);
  EXPECT_EQ(sizes.batch, 2);
  EXPECT_EQ(sizes.groups, 4);
  EXPECT_EQ(sizes.kernel_height, 1);
  EXPECT_EQ(sizes.kernel_width, 3);
  EXPECT_EQ(sizes.out_height * sizes.out_width, 200);
}

TEST(EdgeLowering, an_unknown_operator_is_traffic_of_its_bytes) {
  OnnxTestGraph test;
  test.output(test.node("Mystery", {test.input("x", {10, 10})}, {}, 1, "some.domain"));
  const EdgeKernel kernel = only_kernel(test);
  EXPECT_EQ(kernel.kind, EdgeKernelKind::traffic);
  EXPECT_EQ(edge_work(kernel).bytes().value(), 2 * 4 * 100);
}

TEST(EdgeLowering, a_transpose_that_a_product_reads_is_gone_and_others_are_not) {
  const auto kinds = [](std::vector<int64_t> order) {
    OnnxTestGraph test;
    const std::string turned = test.node("Transpose", {test.input("y", {8, 8, 8})}, {with("perm", std::move(order))});
    test.output(test.node("MatMul", {test.input("x", {8, 8, 8}), turned}));
    return kernels_of(test.graph()).size();
  };
  EXPECT_EQ(kinds({0, 2, 1}), 1U);
  EXPECT_EQ(kinds({1, 0, 2}), 1U);
  EXPECT_EQ(kinds({2, 1, 0}), 2U);
}

TEST(EdgeLowering, what_a_graph_was_optimised_to_before_costs_the_same) {
  OnnxTestGraph plain, fused;
  plain.output(plain.node("Relu", {add_conv(plain, plain.input("x", {1, 8, 6, 6}), 8, 8, 1)}));
  fused.output(fused.node("FusedConv", {fused.input("x", {1, 8, 6, 6}), fused.weight({8, 8, 1, 1}), fused.weight({8})},
                          {with("kernel_shape", {1, 1}), with_text("activation", "Relu")}, 1, "com.microsoft"));
  EXPECT_EQ(only_kernel(plain), only_kernel(fused));
}

// A product as dynamic quantization writes it.
std::string add_integer_product(OnnxTestGraph& graph, const std::string& quantized, int64_t in, int64_t out) {
  const std::string stem = quantized.substr(0, quantized.size() - 1);
  const std::string whole = graph.node("MatMulInteger", {quantized, graph.weight({in, out}, OnnxType::int8), stem + "2",
                                                         graph.weight({}, OnnxType::int8)});
  const std::string scales = graph.node("Mul", {stem + "1", graph.weight({})});
  return graph.node("Mul", {graph.node("Cast", {whole}, {with("to", 1)}), scales});
}

TEST(EdgeLowering, a_product_that_quantizes_its_input_is_one_step_unless_others_read_it) {
  OnnxTestGraph alone, shared;
  for (OnnxTestGraph* graph : {&alone, &shared}) {
    const std::string quantized = graph->node("DynamicQuantizeLinear", {graph->input("x", {16, 64})}, {}, 3);
    graph->output(add_integer_product(*graph, quantized, 64, 32));
    if (graph == &shared) graph->output(add_integer_product(*graph, quantized, 64, 32));
  }
  const EdgeLowering joined = lower_edge(alone.graph(), shipped_rules());
  ASSERT_EQ(joined.steps.size(), 1U);
  EXPECT_EQ(joined.steps[0].rule, "dynamic_product");
  ASSERT_EQ(joined.steps[0].calls.size(), 2U);
  EXPECT_EQ(joined.steps[0].calls[0].kernel.kind, EdgeKernelKind::linear);
  EXPECT_EQ(joined.steps[0].calls[0].scheme, Scheme::int8);
  EXPECT_EQ(joined.steps[0].calls[1].kernel.kind, EdgeKernelKind::quantize);
  EXPECT_EQ(lower_edge(shared.graph(), shipped_rules()).steps.size(), 9U);  // one by one
}

// A tensor of 8 bits as one of fp32; a weight without a name for it.
std::string dequantized(OnnxTestGraph& graph, const std::string& narrow, OnnxType zero_point = OnnxType::uint8) {
  return graph.node("DequantizeLinear", {narrow, graph.weight({}), graph.weight({}, zero_point)});
}
std::string quantized(OnnxTestGraph& graph, const std::string& wide) {
  return graph.node("QuantizeLinear", {wide, graph.weight({}), graph.weight({}, OnnxType::uint8)});
}
std::string dequantized_weight(OnnxTestGraph& graph, const OnnxDims& dims) {
  return dequantized(graph, graph.weight(dims, OnnxType::int8), OnnxType::int8);
}

TEST(EdgeLowering, a_convolution_between_dequantize_and_quantize_is_the_quantized_operator) {
  OnnxTestGraph apart, joined;
  const std::vector<OnnxAttribute> pads = {with("pads", {1, 1, 1, 1})};
  const std::string x = apart.input("x", {1, 16, 8, 8}, OnnxType::uint8), s = apart.weight({});
  const std::string z = apart.weight({}, OnnxType::uint8), zw = apart.weight({}, OnnxType::int8);
  apart.output(apart.node("QLinearConv", {x, s, z, apart.weight({32, 16, 3, 3}, OnnxType::int8), s, zw, s, z}, pads));
  const std::string wide = dequantized(joined, joined.input("x", {1, 16, 8, 8}, OnnxType::uint8));
  const std::string conv = joined.node("Conv", {wide, dequantized_weight(joined, {32, 16, 3, 3})}, pads);
  joined.output(quantized(joined, joined.node("Relu", {conv})));
  const EdgeLowering one = lower_edge(apart.graph(), shipped_rules());
  const EdgeLowering other = lower_edge(joined.graph(), shipped_rules());
  ASSERT_EQ(other.steps.size(), 1U);
  EXPECT_EQ(other.steps[0].nodes.size(), 4U) << "all but the DequantizeLinear of constants";
  ASSERT_EQ(other.steps[0].calls.size(), 1U);
  EXPECT_EQ(other.steps[0].calls[0].kernel, one.steps.at(0).calls.at(0).kernel);
  EXPECT_EQ(other.steps[0].calls[0].scheme, Scheme::int8);
  EXPECT_TRUE(other.notes.empty());
}

TEST(EdgeLowering, a_dequantize_that_only_quantized_operators_read_is_gone) {
  OnnxTestGraph test;
  const std::string x = dequantized(test, test.input("x", {4, 64}, OnnxType::uint8));
  const std::string product = quantized(test, test.node("MatMul", {x, dequantized_weight(test, {64, 64})}));
  test.output(quantized(test, test.node("Add", {x, dequantized(test, product)})));
  const EdgeLowering both = lower_edge(test.graph(), shipped_rules());
  ASSERT_EQ(both.steps.size(), 2U);
  EXPECT_EQ(both.steps[0].calls.at(0).kernel.kind, EdgeKernelKind::linear);
  EXPECT_EQ(both.steps[0].calls.at(0).scheme, Scheme::int8);
  EXPECT_EQ(both.steps[1].calls.at(0).kernel.kind, EdgeKernelKind::int8_add);
  // An operator in fp32 beside them needs it.
  test.output(test.node("Sin", {x}));
  EXPECT_EQ(lower_edge(test.graph(), shipped_rules()).steps.size(), 4U);
}

TEST(EdgeLowering, a_product_of_dequantized_weights_alone_stays_one_of_fp32_that_no_sweep_has) {
  OnnxTestGraph test;
  test.output(test.node("MatMul", {test.input("x", {4, 64}), dequantized_weight(test, {64, 32})}));
  const EdgeLowering lowering = lower_edge(test.graph(), shipped_rules());
  ASSERT_EQ(lowering.steps.size(), 1U);
  ASSERT_EQ(lowering.steps[0].calls.size(), 2U);
  EXPECT_EQ(lowering.steps[0].calls[0].scheme, Scheme::fp32);
  EXPECT_TRUE(lowering.steps[0].calls[0].is_stand_in);
  // Weights are read in 8 bits and written in 32.
  EXPECT_EQ(edge_work(lowering.steps[0].calls[1].kernel).bytes().value(), 64 * 32 * (1 + 4));
  ASSERT_EQ(lowering.notes.size(), 1U);
  EXPECT_NE(lowering.notes[0].find("DequantizeLinear"), std::string::npos);
}

TEST(EdgeLowering, a_dequantized_tensor_that_a_convolution_adds_leaves_its_price_alone) {
  const OnnxDims dims = {1, 8, 6, 6};
  for (const bool constant : {false, true}) {
    OnnxTestGraph test;
    const std::string conv = add_conv(test, test.input("x", dims), 8, 8, 3);
    const std::string skip =
        constant ? dequantized_weight(test, dims) : dequantized(test, test.input("skip", dims, OnnxType::uint8));
    test.output(test.node("Relu", {test.node("Add", {conv, skip})}));
    const EdgeLowering lowering = lower_edge(test.graph(), shipped_rules());
    const EdgeStep& step = lowering.steps.back();
    EXPECT_EQ(step.rule, "conv_relu");
    ASSERT_EQ(step.calls.size(), 1U);
    EXPECT_EQ(edge_parameters(step.calls[0].kernel), "ic=8;oc=8;h=6;oh=6;k=3;s=1;act=relu;sum=1");
    EXPECT_FALSE(step.calls[0].is_stand_in);
    for (const std::string& note : lowering.notes) EXPECT_EQ(note.find("DequantizeLinear"), std::string::npos) << note;
  }
}

TEST(EdgeLowering, gates_of_a_recurrent_layer_move_the_bytes_of_a_step) {
  const auto bytes = [](int64_t steps) {
    constexpr int64_t width = 32, hidden = 16;
    OnnxTestGraph test;
    test.output(test.node(
        "LSTM",
        {test.input("x", {steps, 1, width}), test.weight({1, 4 * hidden, width}), test.weight({1, 4 * hidden, hidden})},
        {with("hidden_size", hidden)}));
    double sum = 0;
    for (const EdgeStep& step : lower_edge(test.graph(), shipped_rules()).steps) {
      for (const EdgeCall& call : step.calls) {
        if (call.kernel.kind == EdgeKernelKind::traffic)
          sum += edge_work(call.kernel).bytes().value() * static_cast<double>(call.count);
      }
    }
    return sum;
  };
  EXPECT_EQ(bytes(50), 50 * (4 + 1) * 16 * 4);  // four gates in, one state out
  EXPECT_EQ(bytes(400), 8 * bytes(50));
}

TEST(EdgeLowering, convolutions_that_no_sweep_has_are_stand_ins) {
  const auto is_stand_in = [](const std::string& operation, const OnnxDims& x, const OnnxDims& weight,
                              std::vector<OnnxAttribute> attributes = {}) {
    OnnxTestGraph test;
    test.output(test.node(operation, {test.input("x", x), test.weight(weight)}, std::move(attributes)));
    return lower_edge(test.graph(), shipped_rules()).steps.at(0).calls.at(0).is_stand_in;
  };
  const OnnxDims x = {1, 32, 14, 14};
  EXPECT_FALSE(is_stand_in("Conv", x, {64, 32, 3, 3}));
  EXPECT_FALSE(is_stand_in("Conv", x, {32, 1, 3, 3}, {with("group", int64_t{32})}));
  EXPECT_FALSE(is_stand_in("Conv", x, {64, 32, 1, 1}, {with("dilations", {2, 2})}));
  EXPECT_TRUE(is_stand_in("Conv", x, {64, 8, 3, 3}, {with("group", int64_t{4})}));
  EXPECT_TRUE(is_stand_in("Conv", x, {64, 1, 3, 3}, {with("group", int64_t{32})}));
  EXPECT_TRUE(is_stand_in("Conv", x, {64, 32, 3, 3}, {with("dilations", {2, 2})}));
  EXPECT_TRUE(is_stand_in("Conv", x, {64, 32, 3, 3}, {with("dilations", {1, 2})}));
  EXPECT_TRUE(is_stand_in("Conv", x, {64, 32, 1, 3}));
  EXPECT_TRUE(is_stand_in("Conv", {1, 32, 14, 14, 14}, {64, 32, 3, 3, 3}));
  EXPECT_TRUE(is_stand_in("ConvTranspose", x, {32, 64, 2, 2}, {with("strides", {2, 2})}));
}

TEST(EdgeLowering, int4_products_multiply_in_8_bits_only_if_the_node_asks_for_it) {
  for (const int64_t level : {0, 4}) {
    OnnxTestGraph test;
    test.output(test.node(
        "MatMulNBits", {test.input("x", {1, 64}), test.weight({32, 2, 16}, OnnxType::uint8), test.weight({64})},
        {with("K", 64), with("N", 32), with("bits", 4), with("block_size", 32), with("accuracy_level", level)}, 1,
        "com.microsoft"));
    const EdgeLowering lowering = lower_edge(test.graph(), shipped_rules());
    ASSERT_EQ(lowering.steps.size(), 1U);
    EXPECT_EQ(lowering.steps[0].calls[0].scheme, Scheme::int4_wo);
    EXPECT_EQ(lowering.steps[0].calls[0].widens_weights, level == 0);
  }
}

TEST(EdgeLowering, a_larger_batch_is_the_same_as_one_that_is_bound) {
  const OnnxTestGraph test = block_network(2, 2);
  const std::vector<EdgeKernel> one = kernels_of(test.graph({.bind = {{"batch", 1}}}));
  const std::vector<EdgeKernel> eight = kernels_of(test.graph({.bind = {{"batch", 8}}}));
  ASSERT_EQ(one.size(), eight.size());
  for (size_t i = 0; i < one.size(); ++i) {
    const EdgeKernel larger = with_batch_times(one[i], 8);
    EXPECT_EQ(larger.kind, eight[i].kind);
    EXPECT_EQ(edge_parameters(larger), edge_parameters(eight[i]));
  }
}

}  // namespace foretoken::edge_lowering_test
