#include "plan/accelerator/accelerator_plan.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "accelerator/formats/designs.h"
#include "accelerator/formats/mapper_constraints.h"
#include "accelerator/problem.h"
#include "base/error.h"

namespace foretoken::accelerator_plan_test {

class AcceleratorPlanTest : public testing::Test {
 protected:
  AcceleratorPlanTest()
      : catalogue_(FORETOKEN_SOURCE_DIR "/data/accelerators"),
        base_(catalogue_.design("gemm_array_16x16").design),
        space_(base_, automatic_knobs(base_.architecture), catalogue_.library()) {}

  AcceleratorPlanQuestion question() const {
    return {.work = {.layers = {{.name = "product", .problem = gemm_problem({.m = 64, .n = 96, .k = 32})}},
                     .constraints = [this](const Problem& problem) { return design_constraints(base_, problem); },
                     .mapper = {.most_tries = 200}},
            .budget = {.evaluations = 30},
            .final_tries = 1000};
  }

  AcceleratorCatalogue catalogue_;
  AcceleratorDesign base_;
  DesignSpace space_;
};

TEST_F(AcceleratorPlanTest, the_winner_is_no_worse_than_the_base_and_not_below_its_bounds) {
  const AcceleratorPlanQuestion asked = question();
  const AcceleratorPlan plan = plan_accelerator(asked, space_);
  ASSERT_NE(plan.winner(), nullptr);
  const double value = asked.objective.value(plan.winner()->costs.run);
  EXPECT_LE(value, asked.objective.value(plan.base.run));
  EXPECT_GE(value, asked.objective.value(*plan.winner_least));
  ASSERT_TRUE(plan.bound);
  EXPECT_GE(value, plan.bound->value);
  EXPECT_EQ(plan.designs, 225);
}

TEST_F(AcceleratorPlanTest, finalists_are_mapped_again_and_figures_are_never_worse_than_the_quick_ones) {
  const AcceleratorPlanQuestion asked = question();
  const AcceleratorPlan plan = plan_accelerator(asked, space_);
  ASSERT_LE(plan.finalists.size(), asked.finalists);
  EXPECT_GE(plan.remapped.size(), plan.finalists.size());
  EXPECT_GE(plan.search_noise, 0);
  for (const EvaluatedDesign& own : plan.remapped) {
    for (const EvaluatedDesign& quick : plan.searches.front().designs) {
      if (quick.point != own.point) continue;
      EXPECT_LE(asked.objective.value(own.costs.run), asked.objective.value(quick.costs.run) * (1 + 1e-9));
    }
  }
}

TEST_F(AcceleratorPlanTest, a_choice_is_settled_only_when_no_other_design_can_be_better) {
  AcceleratorPlanQuestion asked = question();
  asked.budget.evaluations = 8;
  const AcceleratorPlan hasty = plan_accelerator(asked, space_);
  EXPECT_FALSE(hasty.is_settled());
  EXPECT_GT(hasty.undecided, 10);  // of 225, most of which their bounds rule out
  EXPECT_GE(hasty.late_gain, 0);

  // Every design of a small space, mapped with as many tries as the finalists.
  const std::vector<Knob> knobs = {parse_knob("knob", "RF.x=8,16", base_.architecture)};
  const DesignSpace small(base_, knobs, catalogue_.library());
  asked.methods = {"exhaustive"};
  asked.work.mapper.most_tries = 2000;
  const AcceleratorPlan thorough = plan_accelerator(asked, small);
  EXPECT_TRUE(thorough.is_settled()) << thorough.undecided;
  EXPECT_EQ(thorough.late_gain, 0);
}

TEST_F(AcceleratorPlanTest, designs_closer_than_the_noise_of_the_search_are_tied) {
  const auto design = [](double energy) {
    return EvaluatedDesign{.costs = {.run = {.energy_pj = energy, .cycles = 1}}};
  };
  AcceleratorPlan plan;
  const DesignObjective energy{.metrics = {MappingMetric::energy}};
  EXPECT_EQ(plan.ties(energy), 0u);
  plan.finalists = {design(100), design(101), design(110)};
  EXPECT_EQ(plan.ties(energy), 0u);
  plan.search_noise = 0.02;
  EXPECT_EQ(plan.ties(energy), 1u);
  plan.search_noise = 0.2;
  EXPECT_EQ(plan.ties(energy), 2u);
  plan.search_noise = 0;
  plan.late_gain = 0.02;  // what the search still gained as it ended
  EXPECT_EQ(plan.ties(energy), 1u);
}

TEST_F(AcceleratorPlanTest, is_the_same_for_any_number_of_threads) {
  AcceleratorPlanQuestion asked = question();
  asked.methods = {"random", "genetic", "bayesian"};
  const AcceleratorPlan one = plan_accelerator(asked, space_);
  asked.work.mapper.threads = 2;
  const AcceleratorPlan two = plan_accelerator(asked, space_);
  ASSERT_EQ(one.searches.size(), two.searches.size());
  for (size_t m = 0; m < one.searches.size(); ++m) {
    EXPECT_EQ(one.searches[m].best_so_far, two.searches[m].best_so_far);
  }
  EXPECT_EQ(one.winner()->point, two.winner()->point);
  EXPECT_EQ(one.winner()->costs.run.energy_pj, two.winner()->costs.run.energy_pj);
}

TEST_F(AcceleratorPlanTest, answers_keep_the_limits_whatever_they_are) {
  const AcceleratorPlan free = plan_accelerator(question(), space_);
  for (const double share : {1.0, 0.6, 0.3}) {
    AcceleratorPlanQuestion asked = question();
    asked.work.limits = {.area_mm2 = share * free.base.area_mm2, .watts = share * free.base.watts};
    const AcceleratorPlan plan = plan_accelerator(asked, space_);
    for (const EvaluatedDesign& own : plan.searches[0].designs) {
      EXPECT_LE(own.costs.area_mm2, *asked.work.limits.area_mm2);
    }
    for (const EvaluatedDesign& own : plan.finalists) EXPECT_LE(own.costs.watts, *asked.work.limits.watts);
  }
}

TEST_F(AcceleratorPlanTest, the_design_of_the_winner_reads_back_to_the_same_costs) {
  const AcceleratorPlanQuestion asked = question();
  const AcceleratorPlan plan = plan_accelerator(asked, space_);
  const Json written = architecture_json(space_.design(plan.winner()->point));
  const AcceleratorDesign read = catalogue_.design_in(JsonView(written, "the winner")).design;
  const MappedDesigns designs(space_, asked.work);
  const auto again = [&](uint64_t seed) {
    return asked.objective.value(designs.settled_costs_of(read.architecture, asked.final_tries, seed).run);
  };
  const uint64_t seed = asked.work.mapper.seed;
  EXPECT_EQ(std::min(again(seed), again(seed + 1)), asked.objective.value(plan.winner()->costs.run));
  EXPECT_EQ(designs.settled_costs_of(read.architecture, asked.final_tries, seed).area_mm2,
            plan.winner()->costs.area_mm2);
}

TEST_F(AcceleratorPlanTest, bounds_of_designs_are_below_what_is_found) {
  MappedDesigns designs(space_, question().work);
  for (int64_t i = 0; i < 225; i += 16) {
    const DesignPoint point = space_.grid().at(i);
    const DesignCosts costs = designs.evaluate({&point, 1}).front();
    const auto least = designs.least(point);
    ASSERT_TRUE(least);
    EXPECT_LE(least->energy_pj, costs.run.energy_pj);
    EXPECT_LE(least->cycles, costs.run.cycles);
  }
}

TEST_F(AcceleratorPlanTest, an_exhaustive_search_beyond_the_budget_is_refused) {
  AcceleratorPlanQuestion asked = question();
  asked.methods = {"exhaustive"};
  EXPECT_THROW(plan_accelerator(asked, space_), InputError);
}

}  // namespace foretoken::accelerator_plan_test
