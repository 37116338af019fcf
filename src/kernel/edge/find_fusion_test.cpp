#include "kernel/edge/find_fusion.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "model/onnx/graph.h"
#include "model/onnx/read_file.h"
#include "model/onnx/read_graph.h"
#include "model/onnx/writer.h"

namespace foretoken::find_fusion_test {

constexpr double call_seconds = 20e-6;

FusionProbe pair_probe() {
  return {.name = "pair", .chain = {"A", "B"}, .whole = {"ab", "empty"}, .parts = {{"a", "empty"}, {"b", "empty"}}};
}

// A takes 100 us and B 50 us of their own.
FusionTimes pair_times(double whole_seconds) {
  return {{"empty", call_seconds},
          {"a", call_seconds + 100e-6},
          {"b", call_seconds + 50e-6},
          {"ab", call_seconds + whole_seconds}};
}

TEST(FindFusion, operators_that_cost_their_sum_are_apart_and_a_free_one_is_fused) {
  const FusionFinding apart = judge_fusion(pair_probe(), pair_times(150e-6));
  EXPECT_EQ(apart.verdict, FusionVerdict::apart);
  EXPECT_NEAR(apart.saved_share, 0, 1e-9);
  const FusionFinding fused = judge_fusion(pair_probe(), pair_times(100e-6));
  EXPECT_EQ(fused.verdict, FusionVerdict::fused);
  EXPECT_NEAR(fused.saved_share, 1, 1e-9);
  EXPECT_NEAR(fused.part_seconds[1], 50e-6, 1e-12);
}

TEST(FindFusion, a_slower_chain_is_never_more_fused) {
  FusionVerdict last = FusionVerdict::fused;
  std::set<FusionVerdict> seen;
  for (double whole = 90e-6; whole < 170e-6; whole += 1e-6) {
    const FusionVerdict verdict = judge_fusion(pair_probe(), pair_times(whole)).verdict;
    EXPECT_LE(verdict, last) << whole;
    last = verdict;
    seen.insert(verdict);
  }
  EXPECT_EQ(seen.size(), 3U);
}

TEST(FindFusion, more_noise_never_makes_a_chain_clear) {
  for (double whole = 90e-6; whole < 170e-6; whole += 5e-6) {
    bool unsure = false;
    for (double noise = 0; noise < 0.5; noise += 0.01) {
      const bool now =
          judge_fusion(pair_probe(), pair_times(whole), {.noise_share = noise}).verdict == FusionVerdict::unsure;
      EXPECT_TRUE(now || !unsure) << whole << " " << noise;
      unsure = now;
    }
    EXPECT_TRUE(unsure);
  }
}

TEST(FindFusion, a_part_too_short_to_be_seen_leaves_the_question_open) {
  FusionTimes seconds = pair_times(100e-6);
  seconds["b"] = call_seconds;
  EXPECT_EQ(judge_fusion(pair_probe(), seconds).verdict, FusionVerdict::unsure);
}

// But those that every model has: copies that come in, and the one element that goes out.
std::vector<std::string> operators_of(const FusionModel& model) {
  std::vector<std::string> found;
  for (const OnnxFileNode& node : model.file.body.nodes) {
    if (node.operation != "Reshape" && node.operation != "Slice") found.push_back(node.operation);
  }
  return found;
}

// A runtime in which every operator takes 40 us, and those of the named chains that follow the first are free.
class MadeUpRuntime {
 public:
  MadeUpRuntime(const FusionPlan& plan, std::set<std::string> fused) : fused_(std::move(fused)) {
    for (const FusionModel& model : plan.models) {
      operators_[model.name] = operators_of(model).size();
    }
  }
  FusionTimes operator()(std::span<const std::string> models) {
    ++passes;
    FusionTimes seconds;
    for (const std::string& model : models) {
      timed.insert(model);
      const size_t operators = fused_.contains(model) ? 1 : operators_.at(model);
      seconds[model] = call_seconds + 40e-6 * static_cast<double>(operators);
    }
    return seconds;
  }
  int passes = 0;
  std::set<std::string> timed;

 private:
  std::set<std::string> fused_;
  std::map<std::string, size_t> operators_;
};

TEST(FindFusion, what_a_made_up_runtime_fuses_is_found_and_nothing_else) {
  const FusionPlan plan = fusion_plan();
  const std::set<std::string> fused = {"conv_relu", "gelu_chain", "matmul_bias", "layer_norm_chain"};
  MadeUpRuntime runtime(plan, fused);
  const FoundFusion result = find_fusion(plan, std::ref(runtime));
  EXPECT_EQ(runtime.passes, 2);
  EXPECT_EQ(runtime.timed.size(), plan.models.size());
  EXPECT_EQ(result.findings.size(), plan.probes.size());
  for (const FusionFinding& finding : result.findings) {
    EXPECT_EQ(finding.verdict == FusionVerdict::fused, fused.contains(finding.name)) << finding.name;
    EXPECT_NE(finding.verdict, FusionVerdict::unsure) << finding.name;
  }
}

TEST(FindFusion, only_chains_that_are_not_clear_are_timed_again_and_the_least_time_counts) {
  FusionPlan plan;
  plan.probes = {
      pair_probe(),
      {.name = "clear", .chain = {"C", "D"}, .whole = {"cd", "empty"}, .parts = {{"c", "empty"}, {"d", "empty"}}}};
  std::vector<std::vector<std::string>> asked;
  const FoundFusion result = find_fusion(plan, [&](std::span<const std::string> models) {
    asked.emplace_back(models.begin(), models.end());
    FusionTimes seconds = pair_times(asked.size() < 3 ? 125e-6 : 100e-6);  // disturbed, then quiet
    seconds.insert({{"c", call_seconds + 50e-6}, {"d", call_seconds + 50e-6}, {"cd", call_seconds + 100e-6}});
    return seconds;
  });
  ASSERT_EQ(asked.size(), 3U);
  EXPECT_EQ(asked[2], (std::vector<std::string>{"a", "ab", "b", "empty"}));
  EXPECT_EQ(result.findings[0].verdict, FusionVerdict::fused);
  EXPECT_EQ(result.findings[1].verdict, FusionVerdict::apart);
}

TEST(FindFusion, a_model_that_the_runtime_refuses_is_said) {
  FusionPlan plan;
  plan.probes = {pair_probe()};
  const FoundFusion result = find_fusion(plan, [](std::span<const std::string> /*models*/) {
    return FusionTimes{{"a", 1e-3}};
  });
  EXPECT_TRUE(result.findings.empty());
  EXPECT_EQ(result.not_run, std::vector<std::string>{"pair"});
}

TEST(FusionPlan, every_model_imports_and_all_it_hands_over_is_single_elements) {
  const FusionPlan plan = fusion_plan();
  std::set<std::string> names;
  for (const FusionModel& model : plan.models) {
    EXPECT_TRUE(names.insert(model.name).second) << model.name;
    const OnnxGraph graph = import_onnx(parse_onnx(onnx_text(model.file), model.name), {});
    EXPECT_FALSE(graph.outputs.empty()) << model.name;
    for (const int64_t output : graph.outputs) EXPECT_EQ(graph.tensor(output).elements(), 1) << model.name;
    for (const OnnxTensorData& tensor : model.file.body.initializers) {
      EXPECT_TRUE(tensor.values.has_value()) << model.name << " " << tensor.name;
    }
  }
}

TEST(FusionPlan, the_parts_of_a_chain_are_the_chain_and_empty_models_have_none_of_it) {
  const FusionPlan plan = fusion_plan();
  const auto operators = [&](const std::string& name) {
    return operators_of(*std::ranges::find(plan.models, name, &FusionModel::name));
  };
  for (const FusionProbe& probe : plan.probes) {
    EXPECT_GE(probe.parts.size(), 2U) << probe.name;
    std::vector<std::string> together;
    for (const FusionPart& part : probe.parts) {
      for (const std::string& operation : operators(part.model)) together.push_back(operation);
      EXPECT_TRUE(operators(part.empty_model).empty()) << part.empty_model;
    }
    EXPECT_EQ(together, probe.chain) << probe.name;
    EXPECT_EQ(operators(probe.whole.model), probe.chain) << probe.name;
  }
}

}  // namespace foretoken::find_fusion_test
