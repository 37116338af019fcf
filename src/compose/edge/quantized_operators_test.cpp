#include "compose/edge/quantized_operators.h"

#include <gtest/gtest.h>

#include "model/onnx/test_graphs.h"

namespace foretoken::quantized_operators_test {

FusionRules shipped_rules() {
  return read_fusion_rules(FORETOKEN_SOURCE_DIR "/data/edge/fusion/onnxruntime.json");
}

std::string dequantized(OnnxTestGraph& graph, const std::string& narrow, double scale) {
  return graph.node("DequantizeLinear", {narrow, graph.real(scale), graph.weight({}, OnnxType::uint8)});
}

std::string quantized(OnnxTestGraph& graph, const std::string& wide, double scale,
                      OnnxType zero_point = OnnxType::uint8) {
  return graph.node("QuantizeLinear", {wide, graph.real(scale), graph.weight({}, zero_point)});
}

std::vector<QuantizedMatch> matches(const OnnxTestGraph& test) {
  const OnnxGraph graph = test.graph();
  static const FusionRules rules = shipped_rules();  // matches point into it
  return quantized_matches(graph, rules);
}

TEST(QuantizedOperators, elements_are_moved_in_8_bits_where_the_scale_stays) {
  const auto joined = [](double scale_after) {
    OnnxTestGraph test;
    const std::string wide = dequantized(test, test.input("x", {1, 8, 6, 6}, OnnxType::uint8), 0.5);
    const std::string pooled = test.node("MaxPool", {wide}, {with("kernel_shape", {2, 2}), with("strides", {2, 2})});
    test.output(quantized(test, pooled, scale_after));
    return matches(test);
  };
  const std::vector<QuantizedMatch> same = joined(0.5);
  ASSERT_EQ(same.size(), 1U);
  EXPECT_EQ(same[0].around.size(), 2U);
  EXPECT_EQ(same[0].read_bytes, 8 * 6 * 6);
  EXPECT_EQ(same[0].written_bytes, 8 * 3 * 3);
  EXPECT_TRUE(joined(0.25).empty());
}

TEST(QuantizedOperators, results_of_16_bits_and_inputs_in_fp32_are_not_joined) {
  const auto joined = [](OnnxType result, bool all_dequantized) {
    OnnxTestGraph test;
    const std::string one = dequantized(test, test.input("x", {4, 8}, OnnxType::uint8), 0.5);
    const std::string other =
        all_dequantized ? dequantized(test, test.input("y", {4, 8}, OnnxType::uint8), 0.25) : test.input("y", {4, 8});
    test.output(quantized(test, test.node("Add", {one, other}), 1, result));
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
