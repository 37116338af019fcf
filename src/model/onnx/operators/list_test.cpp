#include "model/onnx/onnx_operator.h"

#include <set>

#include <gtest/gtest.h>

#include "base/error.h"
#include "model/onnx/test_graphs.h"

namespace foretoken::operators_list_test {

TEST(OnnxOperators, each_stands_once_in_the_list) {
  std::set<std::pair<std::string_view, std::string_view>> names;
  for (const OnnxOperator& own : all_onnx_operators()) {
    EXPECT_TRUE(names.emplace(own.domain, own.name).second) << own.name;
    EXPECT_NE(own.infer, nullptr) << own.name;
  }
  EXPECT_GE(names.size(), 120u);
}

struct Case {
  const char* operation;
  std::vector<OnnxDims> inputs;
  std::vector<OnnxAttribute> attributes;
  std::vector<std::vector<int64_t>> lists;  // inputs of known integers after those
  OnnxDims expected;
  int64_t opset = 17;
  const char* domain = "";
};

OnnxGraph graph_of(const Case& own) {
  OnnxTestGraph graph(own.opset);
  std::vector<std::string> inputs;
  for (const OnnxDims& dims : own.inputs) inputs.push_back(graph.input("x" + std::to_string(inputs.size()), dims));
  for (const std::vector<int64_t>& list : own.lists) inputs.push_back(graph.integers(list));
  graph.output(graph.node(own.operation, inputs, own.attributes, 1, own.domain));
  return graph.graph();
}

TEST(OnnxOperators, shapes_follow_the_specification) {
  const std::vector<Case> cases = {
      {"Add", {{4, 1, 3}, {5, 1}}, {}, {}, {4, 5, 3}},
      {"Where", {{2, 1}, {1, 3}, {1}}, {}, {}, {2, 3}},
      {"Conv",
       {{1, 3, 224, 224}, {64, 3, 7, 7}},
       {with("strides", {2, 2}), with("pads", {3, 3, 3, 3})},
       {},
       {1, 64, 112, 112}},
      {"Conv",
       {{1, 8, 15, 10}, {8, 1, 3, 5}},
       {with("group", int64_t{8}), with_text("auto_pad", "SAME_UPPER")},
       {},
       {1, 8, 15, 10}},
      {"Conv", {{2, 4, 100}, {6, 4, 5}}, {with("dilations", std::vector<int64_t>{2})}, {}, {2, 6, 92}},
      {"ConvTranspose", {{1, 8, 7, 7}, {8, 4, 2, 2}}, {with("strides", {2, 2})}, {}, {1, 4, 14, 14}},
      {"MaxPool",
       {{1, 8, 112, 112}},
       {with("kernel_shape", {3, 3}), with("strides", {2, 2}), with("pads", {1, 1, 1, 1})},
       {},
       {1, 8, 56, 56}},
      {"MaxPool",
       {{1, 8, 13, 13}},
       {with("kernel_shape", {3, 3}), with("strides", {2, 2}), with("ceil_mode", int64_t{1})},
       {},
       {1, 8, 6, 6}},
      {"AveragePool",
       {{1, 8, 14, 14}},
       {with("kernel_shape", {3, 3}), with("strides", {2, 2}), with("ceil_mode", int64_t{1})},
       {},
       {1, 8, 7, 7}},
      {"GlobalAveragePool", {{2, 8, 7, 7}}, {}, {}, {2, 8, 1, 1}},
      {"MatMul", {{2, 1, 4, 8}, {3, 8, 5}}, {}, {}, {2, 3, 4, 5}},
      {"MatMul", {{8}, {8, 5}}, {}, {}, {5}},
      {"Gemm", {{8, 4}, {5, 8}}, {with("transA", int64_t{1}), with("transB", int64_t{1})}, {}, {4, 5}},
      {"Einsum", {{2, 4, 8}, {2, 5, 8}}, {with_text("equation", "bqd,bkd->bqk")}, {}, {2, 4, 5}},
      {"Reshape", {{2, 3, 4}}, {}, {{0, -1}}, {2, 12}},
      {"Flatten", {{2, 3, 4}}, {with("axis", int64_t{2})}, {}, {6, 4}},
      {"Squeeze", {{1, 3, 1}}, {with("axes", std::vector<int64_t>{0})}, {}, {3, 1}, 11},
      {"Squeeze", {{1, 3, 1}}, {}, {{-1}}, {1, 3}},
      {"Unsqueeze", {{3, 4}}, {}, {{0, -1}}, {1, 3, 4, 1}},
      {"Transpose", {{2, 3, 4}}, {with("perm", {2, 0, 1})}, {}, {4, 2, 3}},
      {"Concat", {{2, 3}, {2, 5}}, {with("axis", int64_t{1})}, {}, {2, 8}},
      {"Split", {{7, 2}}, {}, {{3, 4}}, {3, 2}},
      {"Slice", {{10, 8}}, {}, {{1, -3}, {9, INT64_MAX}, {0, 1}, {2, 1}}, {4, 3}},
      {"Slice", {{10}}, {}, {{-1}, {INT64_MIN}, {0}, {-1}}, {10}},
      {"Slice",
       {{10, 8}},
       {with("starts", std::vector<int64_t>{2}), with("ends", std::vector<int64_t>{5})},
       {},
       {3, 8},
       9},
      {"Pad", {{1, 2, 3}}, {}, {{0, 0, 1, 0, 0, 2}}, {1, 2, 6}},
      {"Expand", {{3, 1}}, {}, {{2, 1, 6}}, {2, 3, 6}},
      {"Tile", {{2, 3}}, {}, {{2, 2}}, {4, 6}},
      {"DepthToSpace", {{1, 8, 2, 3}}, {with("blocksize", int64_t{2})}, {}, {1, 2, 4, 6}},
      {"SpaceToDepth", {{1, 2, 4, 6}}, {with("blocksize", int64_t{2})}, {}, {1, 8, 2, 3}},
      {"Gather", {{10, 4}}, {}, {{1, 2, 3}}, {3, 4}},
      {"GatherND", {{2, 3, 4}, {5, 2}}, {}, {}, {5, 4}},
      {"TopK", {{3, 10}}, {}, {{4}}, {3, 4}},
      {"ReduceMean", {{2, 3, 4}}, {with("axes", {1, 2}), with("keepdims", int64_t{0})}, {}, {2}},
      {"ReduceSum", {{2, 3, 4}}, {}, {{-1}}, {2, 3, 1}},
      {"ArgMax", {{2, 3}}, {with("axis", int64_t{1}), with("keepdims", int64_t{0})}, {}, {2}},
      {"Shape", {{2, 3, 4}}, {with("start", int64_t{1})}, {}, {2}},
      {"LSTM", {{9, 2, 8}, {2, 40, 8}, {2, 40, 10}}, {with("hidden_size", int64_t{10})}, {}, {9, 2, 2, 10}},
      {"DynamicQuantizeLSTM",
       {{9, 2, 8}, {2, 8, 40}, {2, 10, 40}},
       {with("hidden_size", int64_t{10})},
       {},
       {9, 2, 2, 10},
       17,
       "com.microsoft"},
      {"Attention", {{2, 16, 64}, {64, 192}}, {with("num_heads", int64_t{4})}, {}, {2, 16, 64}, 17, "com.microsoft"},
      {"MultiHeadAttention",
       {{2, 16, 64}, {2, 20, 64}, {2, 20, 32}},
       {with("num_heads", int64_t{4})},
       {},
       {2, 16, 32},
       17,
       "com.microsoft"},
      {"NonMaxSuppression", {{1, 100, 4}, {1, 5, 100}}, {}, {{10}}, {50, 3}},
      {"QLinearAdd", {{2, 3}, {1}, {1}, {1, 3}, {1}, {1}}, {}, {}, {2, 3}, 17, "com.microsoft"},
  };
  for (const Case& own : cases) {
    const OnnxGraph graph = graph_of(own);
    EXPECT_EQ(graph.tensor(graph.outputs[0]).dims, own.expected) << own.operation;
    EXPECT_NE(graph.tensor(graph.outputs[0]).origin, OnnxShapeOrigin::assumed) << own.operation;
  }
}

TEST(OnnxOperators, sizes_that_contradict_each_other_name_the_node) {
  const std::vector<Case> cases = {
      {"Add", {{4}, {3}}, {}, {}, {}},
      {"MatMul", {{2, 3}, {4, 5}}, {}, {}, {}},
      {"Conv", {{1, 3, 8, 8}, {4, 5, 3, 3}}, {}, {}, {}},
      {"Conv", {{1, 3, 2, 2}, {4, 3, 3, 3}}, {}, {}, {}},
      {"Reshape", {{2, 3}}, {}, {{4}}, {}},
      {"Concat", {{2, 3}, {3, 5}}, {with("axis", int64_t{1})}, {}, {}},
      {"Transpose", {{2, 3}}, {with("perm", {0, 0})}, {}, {}},
      {"Tile", {{4, 4}}, {}, {{INT64_MAX, INT64_MAX}}, {}},
  };
  for (const Case& own : cases) {
    try {
      graph_of(own);
      ADD_FAILURE() << own.operation;
    } catch (const InputError& error) {
      EXPECT_NE(error.problem().path.find(own.operation), std::string::npos);
    }
  }
}

// The integers that a chain of nodes on constants comes to.
std::vector<int64_t> folded(const OnnxTestGraph& graph) {
  const OnnxGraph made = graph.graph();
  const OnnxTensor& tensor = made.tensor(made.outputs[0]);
  EXPECT_TRUE(tensor.values.has_value());
  EXPECT_TRUE(made.nodes.back().is_folded);
  return tensor.values ? tensor.values->integers : std::vector<int64_t>();
}

TEST(OnnxOperators, constants_are_folded_as_a_runtime_computes_them) {
  using Integers = std::vector<int64_t>;
  const auto binary = [](const char* operation, Integers a, Integers b) {
    OnnxTestGraph graph;
    graph.output(graph.node(operation, {graph.integers(std::move(a)), graph.integers(std::move(b))}));
    return folded(graph);
  };
  EXPECT_EQ(binary("Add", {1, 2}, {10}), (Integers{11, 12}));
  EXPECT_EQ(binary("Div", {-7, 7}, {2}), (Integers{-3, 3}));
  EXPECT_EQ(binary("Mod", {-7, 7}, {3}), (Integers{2, 1}));
  EXPECT_EQ(binary("Equal", {1, 2}, {2}), (Integers{0, 1}));
  EXPECT_EQ(binary("Gather", {5, 6, 7}, {-1, 0}), (Integers{7, 5}));

  OnnxTestGraph range;
  range.output(range.node("Range", {range.integer(1), range.integer(8), range.integer(3)}));
  EXPECT_EQ(folded(range), (Integers{1, 4, 7}));

  OnnxTestGraph chosen;
  const std::string is_free = chosen.node("Equal", {chosen.integers({4, -1}), chosen.integers({-1, -1})});
  chosen.output(chosen.node("Where", {is_free, chosen.integers({1, 1}), chosen.integers({4, -1})}));
  EXPECT_EQ(folded(chosen), (Integers{4, 1}));

  OnnxTestGraph sliced;
  const std::string all = sliced.integers({1, 2, 3, 4, 5});
  sliced.output(sliced.node(
      "Slice", {all, sliced.integers({3}), sliced.integers({-6}), sliced.integers({0}), sliced.integers({-2})}));
  EXPECT_EQ(folded(sliced), (Integers{4, 2}));

  OnnxTestGraph turned;
  const std::string square = turned.node("Reshape", {turned.integers({1, 2, 3, 4, 5, 6}), turned.integers({2, 3})});
  turned.output(turned.node("Transpose", {square}));
  EXPECT_EQ(folded(turned), (Integers{1, 4, 2, 5, 3, 6}));

  OnnxTestGraph found;
  found.output(found.node("NonZero", {found.integers({0, 7, 0, 8})}));
  EXPECT_EQ(folded(found), (Integers{1, 3}));
}

TEST(OnnxOperators, a_resize_takes_sizes_or_scales) {
  OnnxTestGraph scaled;
  scaled.input("x", {1, 3, 10, 10});
  scaled.output(scaled.node("Resize", {"x", "", scaled.reals({1, 1, 2, 1.5})}));
  const OnnxGraph a = scaled.graph();
  EXPECT_EQ(a.tensor(a.outputs[0]).dims, (OnnxDims{1, 3, 20, 15}));
  OnnxTestGraph sized;
  sized.input("x", {1, 3, 10, 10});
  sized.output(sized.node("Resize", {"x", "", "", sized.integers({1, 3, 7, 8})}));
  const OnnxGraph b = sized.graph();
  EXPECT_EQ(b.tensor(b.outputs[0]).dims, (OnnxDims{1, 3, 7, 8}));
}

TEST(OnnxOperators, quantized_layers_keep_the_types_of_the_specification) {
  OnnxTestGraph graph;
  graph.input("x", {1, 8, 16, 16});
  const std::string scale = graph.weight({}), zero = graph.weight({}, OnnxType::uint8);
  const std::string quantized = graph.node("QuantizeLinear", {"x", scale, zero});
  const std::string weight = graph.weight({4, 8, 3, 3}, OnnxType::int8);
  const std::string conv = graph.node("QLinearConv", {quantized, scale, zero, weight, scale, zero, scale, zero});
  graph.output(graph.node("DequantizeLinear", {conv, scale, zero}));
  const OnnxGraph made = graph.graph();
  EXPECT_EQ(made.tensor(made.nodes[1].outputs[0]).type, OnnxType::uint8);
  EXPECT_EQ(made.tensor(made.nodes[1].outputs[0]).dims, (OnnxDims{1, 4, 14, 14}));
  EXPECT_EQ(made.tensor(made.outputs[0]).type, OnnxType::float32);
}

}  // namespace foretoken::operators_list_test
