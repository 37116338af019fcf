#include "accelerator/validate/loop_nest_cases.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>

#include "accelerator/evaluator.h"
#include "accelerator/mapping_text.h"
#include "base/text.h"

namespace foretoken::loop_nest_cases_test {

constexpr double rounding = 1e-9;  // means over instances are printed without their fraction

class PublishedLoopNestsNeedsData : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    const char* folder = std::getenv("FORETOKEN_DATA");
    if (folder == nullptr) GTEST_SKIP() << "FORETOKEN_DATA is not set";
    const auto path = std::filesystem::path(folder) / "accelerator" / GetParam();
    const Json document = read_json_file(path);
    cases_ = read_loop_nest_cases(JsonView(document, path.string()));
  }

  static Evaluation evaluated(const LoopNestCase& own, const EvaluationRules& rules) {
    Evaluation result;
    EXPECT_TRUE(MappingEvaluator(own.architecture, own.problem, rules).evaluate(own.mapping, result)) << own.id;
    return result;
  }

  std::vector<LoopNestCase> cases_;
};

TEST_P(PublishedLoopNestsNeedsData, are_sound_mappings) {
  for (const LoopNestCase& own : cases_) {
    EXPECT_EQ(mapping_faults(own.mapping, own.architecture, own.problem), std::vector<std::string>{}) << own.id;
  }
}

TEST_P(PublishedLoopNestsNeedsData, cycles_and_every_count_are_exact) {
  ASSERT_FALSE(cases_.empty());
  for (const LoopNestCase& own : cases_) {
    const Evaluation result = evaluated(own, timeloop_3_0_3_rules);
    EXPECT_EQ(result.cycles, own.cycles) << own.id;
    for (const ExpectedTraffic& expected : own.traffic) {
      const auto level = static_cast<size_t>(find_level(own.architecture, expected.level));
      const auto tensor = static_cast<size_t>(find_tensor(own.problem, expected.tensor));
      const TensorTraffic& counted = traffic_at(result, own.problem, level, tensor);
      const std::string where = own.id + " " + expected.level + " " + expected.tensor;
      EXPECT_EQ(counted.tile_words, expected.utilized_words) << where;
      EXPECT_EQ(counted.instances, expected.instances) << where;
      EXPECT_EQ(std::floor(counted.updates + rounding), expected.updates) << where;
      EXPECT_EQ(std::floor(counted.reads + rounding), expected.reads) << where;
      EXPECT_EQ(std::floor(counted.fills + rounding), expected.fills) << where;
    }
  }
}

TEST_P(PublishedLoopNestsNeedsData, energies_are_exact_to_the_digits_printed) {
  for (const LoopNestCase& own : cases_) {
    const Evaluation result = evaluated(own, timeloop_3_0_3_rules);
    EXPECT_EQ(result.compute_cycles * result.levels.back().instances, own.operations) << own.id;
    const double energy = timeloop_3_0_3_energy_pj(result, own.architecture);
    EXPECT_LT(std::abs(energy - own.energy_pj) / own.energy_pj, 1e-4) << own.id;
  }
}

TEST_P(PublishedLoopNestsNeedsData, figures_of_the_later_version_are_met_too) {
  for (const LoopNestCase& own : cases_) {
    const Evaluation result = evaluated(own, timeloop_rules);
    for (const auto& [name, figure] : own.replaced) {
      if (name == "computes") {
        EXPECT_EQ(result.operations, figure) << own.id;
      } else if (name == "energy_pj_sum_of_levels") {
        EXPECT_NEAR(result.energy_pj / figure, 1, 1e-6) << own.id;
      } else {
        const std::vector<std::string_view> parts = split(name, ".");  // shared_glb.Inputs.fills
        ASSERT_EQ(parts.size(), 3u) << own.id << " " << name;
        const TensorTraffic& traffic =
            traffic_at(result, own.problem, find_level(own.architecture, parts[0]), find_tensor(own.problem, parts[1]));
        ASSERT_TRUE(parts[2] == "fills" || parts[2] == "reads") << own.id << " " << name;
        EXPECT_EQ(parts[2] == "fills" ? traffic.fills : traffic.reads, figure) << own.id << " " << name;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Timeloop, PublishedLoopNestsNeedsData,
                         testing::Values("dense_cases.json", "own_cases.json", "conv1_eyeriss_cases.json"));

}  // namespace foretoken::loop_nest_cases_test
