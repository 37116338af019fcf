#include "compose/edge/fusion_rules.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "model/onnx/test_graphs.h"

namespace foretoken::fusion_rules_test {

std::string rules_file(const std::string& rules) {
  return R"({"format": "foretoken-fusion-rules", "version": 1, "runtime": "test", "about": "a test", "rules": [)" +
         rules + "]}";
}

const std::string conv_relu = R"({"name": "conv_relu", "source": "a test", "kernel": "conv", "sizes_of": "conv",
  "activation": "relu", "adds": "add", "nodes": [
    {"id": "conv", "op": "Conv"},
    {"id": "add", "op": "Add", "inputs": ["conv", "other"], "where": "same_shapes", "optional": true},
    {"id": "relu", "op": "Relu", "inputs": ["add"]}]})";

std::optional<FusionMatch> first_match(const OnnxGraph& graph, const FusionRules& rules, int64_t node = 0) {
  return FusionMatcher(graph, rules).match(node, std::vector<bool>(graph.nodes.size(), false));
}

TEST(FusionRules, optional_nodes_are_written_out_longest_first) {
  const FusionRules rules = parse_fusion_rules(rules_file(conv_relu), "test");
  ASSERT_EQ(rules.rules.size(), 2U);
  EXPECT_EQ(rules.rules[0].nodes.size(), 3U);
  EXPECT_TRUE(rules.rules[0].accumulates);
  ASSERT_EQ(rules.rules[1].nodes.size(), 2U);
  EXPECT_FALSE(rules.rules[1].accumulates);
  EXPECT_EQ(rules.rules[1].nodes[1].inputs[0].index, 0U) << "the activation reads the convolution itself";
}

TEST(FusionRules, a_residual_is_joined_with_its_operands_either_way_round) {
  const FusionRules rules = parse_fusion_rules(rules_file(conv_relu), "test");
  for (const bool swapped : {false, true}) {
    OnnxTestGraph test;
    const std::string x = test.input("x", {1, 8, 4, 4}), y = add_conv(test, x, 8, 8, 3);
    test.output(test.node("Relu", {swapped ? test.node("Add", {x, y}) : test.node("Add", {y, x})}));
    const OnnxGraph graph = test.graph();
    const std::optional<FusionMatch> match = first_match(graph, rules);
    ASSERT_TRUE(match);
    EXPECT_EQ(match->nodes.size(), 3U);
    EXPECT_TRUE(match->rule->accumulates);
  }
}

TEST(FusionRules, what_others_read_is_not_joined) {
  const FusionRules rules = parse_fusion_rules(rules_file(conv_relu), "test");
  OnnxTestGraph test;
  const std::string y = add_conv(test, test.input("x", {1, 8, 4, 4}), 8, 8, 3);
  test.output(test.node("Relu", {y}));
  EXPECT_TRUE(first_match(test.graph(), rules));
  test.output(y);
  EXPECT_FALSE(first_match(test.graph(), rules)) << "the convolution's result leaves the graph";
}

TEST(FusionRules, numbers_and_shared_tensors_have_to_agree) {
  const FusionRules rules = parse_fusion_rules(
      rules_file(R"({"name": "gelu", "source": "a test", "kernel": "gelu", "sizes_of": "half", "nodes": [
        {"id": "scaled", "op": "Div", "inputs": ["x", 1.41421]}, {"id": "erf", "op": "Erf", "inputs": ["scaled"]},
        {"id": "shifted", "op": "Add", "inputs": ["erf", 1]}, {"id": "gated", "op": "Mul", "inputs": ["x", "shifted"]},
        {"id": "half", "op": "Mul", "inputs": ["gated", 0.5]}]})"),
      "test");
  const auto matches = [&](double divisor, bool same_tensor) {
    OnnxTestGraph test;
    const std::string x = test.input("x", {2, 8}), other = test.input("y", {2, 8});
    const std::string erf = test.node("Erf", {test.node("Div", {x, test.reals({divisor})})});
    const std::string gated = test.node("Mul", {test.node("Add", {erf, test.reals({1})}), same_tensor ? x : other});
    test.output(test.node("Mul", {gated, test.reals({0.5})}));
    return first_match(test.graph(), rules).has_value();
  };
  EXPECT_TRUE(matches(1.4142135, true));
  EXPECT_FALSE(matches(1.5, true));
  EXPECT_FALSE(matches(1.4142135, false));
}

TEST(FusionRules, mistakes_are_named_with_their_place) {
  const auto path_of = [](const std::string& text) {
    try {
      parse_fusion_rules(text, "rules.json");
    } catch (const InputError& error) {
      EXPECT_EQ(error.problem().source, "rules.json");
      EXPECT_FALSE(error.problem().expected.empty());
      return error.problem().path;
    }
    return std::string("accepted");
  };
  const auto rule = [](const std::string& nodes, const std::string& kernel) {
    return rules_file(R"({"name": "r", "source": "s", "kernel": ")" + kernel + R"(", "nodes": [)" + nodes + "]}");
  };
  EXPECT_EQ(path_of(rule(R"({"id": "a", "op": "Conv"})", "convv")), "rules[0].kernel");
  EXPECT_EQ(path_of(rule("", "conv")), "rules[0].nodes");
  EXPECT_EQ(path_of(rule(R"({"id": "a", "op": "Conv", "where": "here"})", "conv")), "rules[0].nodes[0].where");
  EXPECT_EQ(path_of(rule(R"({"id": "a", "op": "Conv"}, {"id": "b", "op": "Relu", "inputs": ["x"]})", "conv")),
            "rules[0].nodes[1]");
  EXPECT_EQ(path_of(rule(R"({"id": "a", "op": "Conv", "optional": true})", "conv")), "rules[0].nodes[0].optional");
  EXPECT_EQ(path_of(R"({"format": "foretoken-fusion-rules", "version": 2, "runtime": "r", "about": "", "rules": []})"),
            "version");
}

TEST(FusionRules, operators_are_those_of_onnx_or_of_a_domain_that_is_not_listed) {
  const auto problem_of = [](const std::string& operations) {
    try {
      parse_fusion_rules(
          rules_file(R"({"name": "r", "source": "s", "kernel": "nothing", "nodes": [{"id": "a", "op": )" + operations +
                     "}]}"),
          "rules.json");
    } catch (const InputError& error) {
      return error.problem();
    }
    return InputProblem{};
  };
  for (const char* taken : {R"("Conv")", R"(["Relu", "com.microsoft.Gelu"])", R"("mine.Mystery")"})
    EXPECT_TRUE(problem_of(taken).path.empty()) << taken;
  EXPECT_EQ(problem_of(R"("Cnov")").suggestion, "Conv");
  EXPECT_EQ(problem_of(R"("Cnov")").path, "rules[0].nodes[0].op");
  EXPECT_EQ(problem_of(R"(["Relu", "com.microsoft.Geluu"])").suggestion, "com.microsoft.Gelu");
  EXPECT_EQ(problem_of(R"(["Relu", "com.microsoft.Geluu"])").path, "rules[0].nodes[0].op[1]");
  for (const char* refused : {"[]", R"("ai.onnx.Conv")", R"(".Conv")"})
    EXPECT_EQ(problem_of(refused).path, "rules[0].nodes[0].op") << refused;
  std::string many = "\"Relu\"";
  for (int i = 1; i < 65; ++i) many += ", \"Relu\"";
  EXPECT_EQ(problem_of("[" + many + "]").path, "rules[0].nodes[0].op[64]");
}

TEST(FusionRules, quantized_operators_are_read_and_their_mistakes_named) {
  const auto file = [](const std::string& rule) {
    return R"({"format": "foretoken-fusion-rules", "version": 1, "runtime": "test", "about": "", "rules": [],
      "quantized": [{"name": "q", "source": "a test", )" +
           rule + "}]}";
  };
  const FusionRules rules =
      parse_fusion_rules(file(R"("op": ["MaxPool"], "inputs": 1, "same_scale": true)"), "rules.json");
  ASSERT_EQ(rules.quantized.size(), 1U);
  EXPECT_EQ(rules.quantized[0].operations, std::vector<std::string>{"MaxPool"});
  EXPECT_EQ(rules.quantized[0].inputs, 1U);
  EXPECT_TRUE(rules.quantized[0].same_scale);
  EXPECT_TRUE(rules.quantized[0].needs_quantize);
  EXPECT_EQ(parse_fusion_rules(file(R"("op": "Conv")"), "rules.json").quantized[0].operations,
            std::vector<std::string>{"Conv"});
  const std::pair<const char*, const char*> mistakes[] = {
      {R"("op": ["Conv"], "input": 1)", "quantized[0].input"},
      {R"("op": ["Conv"], "activations": ["Reluu"])", "quantized[0].activations[0]"},
      {R"("op": ["com.microsoft.Gelu"])", "quantized[0].op"},
  };
  for (const auto& [rule, path] : mistakes) {
    try {
      parse_fusion_rules(file(rule), "rules.json");
      ADD_FAILURE() << rule;
    } catch (const InputError& error) {
      EXPECT_EQ(error.problem().path, path);
    }
  }
}

TEST(FusionRules, those_that_ship_are_read) {
  for (const char* name : {"onnxruntime", "xnnpack"}) {
    const FusionRules rules =
        read_fusion_rules(std::string(FORETOKEN_SOURCE_DIR "/data/edge/fusion/") + name + ".json");
    EXPECT_FALSE(rules.rules.empty()) << name;
  }
  EXPECT_TRUE(read_fusion_rules(FORETOKEN_SOURCE_DIR "/data/edge/fusion/eager.json").rules.empty());
}

}  // namespace foretoken::fusion_rules_test
