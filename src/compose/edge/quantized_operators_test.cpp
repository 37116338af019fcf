#include "compose/edge/quantized_operators.h"

#include <gtest/gtest.h>

#include <optional>

#include "model/onnx/test_graphs.h"

namespace foretoken::quantized_operators_test {

FusionRules shipped_rules() {
  return read_fusion_rules(FORETOKEN_SOURCE_DIR "/data/edge/fusion/onnxruntime.json");
}

struct ZeroPoint {
  int64_t value = 0;
  OnnxType type = OnnxType::uint8;
  bool is_given = true;
};

std::vector<std::string> with_parameters(OnnxTestGraph& graph, const std::string& tensor, double scale,
                                         const ZeroPoint& zero_point) {
  std::vector<std::string> inputs = {tensor, graph.real(scale)};
  if (!zero_point.is_given) return inputs;
  inputs.push_back(graph.weight({}, zero_point.type));
  graph.file().body.initializers.back().values = OnnxValues::of({zero_point.value});
  return inputs;
}

std::string dequantized(OnnxTestGraph& graph, const std::string& narrow, double scale,
                        const ZeroPoint& zero_point = {}) {
  return graph.node("DequantizeLinear", with_parameters(graph, narrow, scale, zero_point));
}

std::string quantized(OnnxTestGraph& graph, const std::string& wide, double scale, const ZeroPoint& zero_point = {}) {
  return graph.node("QuantizeLinear", with_parameters(graph, wide, scale, zero_point));
}

std::vector<QuantizedMatch> matches(const OnnxTestGraph& test) {
  const OnnxGraph graph = test.graph();
  static const FusionRules rules = shipped_rules();  // matches point into it
  return quantized_matches(graph, rules);
}

TEST(QuantizedOperators, elements_are_moved_in_8_bits_where_scale_zero_point_and_type_stay) {
  const auto joined = [](double scale_after, const ZeroPoint& before = {}, const ZeroPoint& after = {}) {
    OnnxTestGraph test;
    const std::string wide = dequantized(test, test.input("x", {1, 8, 6, 6}, before.type), 0.5, before);
    const std::string pooled = test.node("MaxPool", {wide}, {with("kernel_shape", {2, 2}), with("strides", {2, 2})});
    test.output(quantized(test, pooled, scale_after, after));
    return matches(test);
  };
  const std::vector<QuantizedMatch> same = joined(0.5);
  ASSERT_EQ(same.size(), 1U);
  EXPECT_EQ(same[0].around.size(), 2U);
  EXPECT_EQ(same[0].read_bytes, 8 * 6 * 6);
  EXPECT_EQ(same[0].written_bytes, 8 * 3 * 3);
  EXPECT_TRUE(joined(0.25).empty());
  EXPECT_EQ(joined(0.5, {.value = 128}, {.value = 128}).size(), 1U);
  EXPECT_TRUE(joined(0.5, {.value = 128}, {.value = 127}).empty());
  EXPECT_TRUE(joined(0.5, {.type = OnnxType::int8}, {.type = OnnxType::uint8}).empty());
  EXPECT_TRUE(joined(0.5, {.is_given = false}, {.is_given = false}).empty());
}

TEST(QuantizedOperators, a_product_may_stay_wide_but_not_go_to_16_bits) {
  const auto joined = [](std::optional<OnnxType> result) {
    OnnxTestGraph test;
    const std::string left = dequantized(test, test.input("x", {4, 8}, OnnxType::uint8), 0.5);
    const std::string right = dequantized(test, test.input("y", {8, 4}, OnnxType::uint8), 0.25);
    const std::string product = test.node("MatMul", {left, right});
    test.output(result ? quantized(test, product, 1, {.type = *result}) : product);
    return matches(test).size();
  };
  EXPECT_EQ(joined(OnnxType::uint8), 1U);
  EXPECT_EQ(joined(std::nullopt), 1U);
  EXPECT_EQ(joined(OnnxType::uint16), 0U);
}

TEST(QuantizedOperators, results_of_16_bits_and_inputs_in_fp32_are_not_joined) {
  const auto joined = [](OnnxType result, bool all_dequantized) {
    OnnxTestGraph test;
    const std::string one = dequantized(test, test.input("x", {4, 8}, OnnxType::uint8), 0.5);
    const std::string other =
        all_dequantized ? dequantized(test, test.input("y", {4, 8}, OnnxType::uint8), 0.25) : test.input("y", {4, 8});
    test.output(quantized(test, test.node("Add", {one, other}), 1, {.type = result}));
    return matches(test).size();
  };
  EXPECT_EQ(joined(OnnxType::uint8, true), 1U);
  EXPECT_EQ(joined(OnnxType::uint16, true), 0U);
  EXPECT_EQ(joined(OnnxType::uint8, false), 0U);
}

TEST(QuantizedOperators, a_result_that_others_read_as_well_stays_wide) {
  for (const bool is_read : {false, true}) {
    OnnxTestGraph test;
    const std::string x = dequantized(test, test.input("x", {4, 8}, OnnxType::uint8), 0.5);
    const std::string sum = test.node("Add", {x, x});
    test.output(quantized(test, sum, 1));
    if (is_read) test.output(test.node("Sin", {sum}));
    EXPECT_EQ(matches(test).size(), is_read ? 0U : 1U);
  }
}

}  // namespace foretoken::quantized_operators_test
