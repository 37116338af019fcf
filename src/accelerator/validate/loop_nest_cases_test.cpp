#include "accelerator/validate/loop_nest_cases.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>

#include "accelerator/evaluator.h"
#include "base/file.h"

namespace foretoken {
namespace {

constexpr double rounding = 1e-9;  // means over instances are printed without their fraction

class PublishedLoopNests : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    const char* folder = std::getenv("FORETOKEN_DATA");
    if (folder == nullptr) GTEST_SKIP() << "FORETOKEN_DATA names no folder of measurements";
    const auto path = std::filesystem::path(folder) / "accelerator" / GetParam();
    const Json document = read_json_file(path);
    cases_ = read_loop_nest_cases(JsonView(document, path.string()));
  }

  static Evaluation evaluated(const LoopNestCase& own, bool halo) {
    EvaluationRules rules = timeloop_rules;
    rules.halo_across_unrelated_loops = halo;
    Evaluation result;
    EXPECT_TRUE(MappingEvaluator(own.architecture, own.problem, rules).evaluate(own.mapping, result)) << own.id;
    return result;
  }

  std::vector<LoopNestCase> cases_;
};

TEST_P(PublishedLoopNests, are_sound_mappings) {
  for (const LoopNestCase& own : cases_) {
    EXPECT_EQ(mapping_faults(own.mapping, own.architecture, own.problem), std::vector<std::string>{}) << own.id;
  }
}

TEST_P(PublishedLoopNests, cycles_and_every_count_are_exact) {
  ASSERT_FALSE(cases_.empty());
  for (const LoopNestCase& own : cases_) {
    const Evaluation result = evaluated(own, true), without_halo = evaluated(own, false);
    EXPECT_EQ(result.cycles, own.cycles) << own.id;
    for (const ExpectedTraffic& expected : own.traffic) {
      const auto level = static_cast<size_t>(find_level(own.architecture, expected.level));
      const auto tensor = static_cast<size_t>(find_tensor(own.problem, expected.tensor));
      const TensorTraffic& counted = traffic_at(result, own.problem, level, tensor);
      const TensorTraffic& older = traffic_at(without_halo, own.problem, level, tensor);
      const std::string where = own.id + " " + expected.level + " " + expected.tensor;
      EXPECT_EQ(counted.tile_words, expected.utilized_words) << where;
      EXPECT_EQ(counted.instances, expected.instances) << where;
      EXPECT_EQ(std::floor(counted.updates + rounding), expected.updates) << where;
      EXPECT_TRUE(std::floor(counted.reads + rounding) == expected.reads || older.reads == expected.reads) << where;
      EXPECT_TRUE(std::floor(counted.fills + rounding) == expected.fills || older.fills == expected.fills) << where;
    }
  }
}

TEST_P(PublishedLoopNests, energy_is_that_of_one_version_or_the_other) {
  for (const LoopNestCase& own : cases_) {
    const double newer = evaluated(own, true).energy_pj, older = evaluated(own, false).energy_pj;
    // Version 3.0.3 charges multiplications that remainders leave out.
    const double extra = (own.operations - operations(own.problem)) * own.architecture.levels.back().energy.compute_pj;
    const double error = std::min(std::abs(newer + extra - own.energy_pj), std::abs(older + extra - own.energy_pj));
    EXPECT_LT(error / own.energy_pj, 1e-4) << own.id;
  }
}

TEST_P(PublishedLoopNests, figures_of_the_later_version_are_met_too) {
  for (const LoopNestCase& own : cases_) {
    const Evaluation result = evaluated(own, true);
    for (const auto& [name, figure] : own.replaced) {
      if (name == "computes") {
        EXPECT_EQ(result.operations, figure) << own.id;
      } else if (name == "energy_pj_sum_of_levels") {
        EXPECT_NEAR(result.energy_pj / figure, 1, 1e-6) << own.id;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Timeloop, PublishedLoopNests,
                         testing::Values("dense_cases.json", "own_cases.json", "conv1_eyeriss_cases.json"));

}  // namespace
}  // namespace foretoken
