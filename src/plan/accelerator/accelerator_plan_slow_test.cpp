#include <gtest/gtest.h>

#include <algorithm>

#include "accelerator/formats/designs.h"
#include "accelerator/formats/mapper_constraints.h"
#include "accelerator/problem.h"
#include "plan/accelerator/accelerator_plan.h"

namespace foretoken::accelerator_plan_slow_test {

// Other seeds of the searches of designs and of mappings: the same winner, one that is tied with it, or the answer says
// that the choice is not settled. Also where the budget is far too small.
TEST(AcceleratorPlanSeeds, five_seeds_have_one_winner_or_say_that_it_is_not_settled) {
  const std::vector<Problem> problems = {gemm_problem({.m = 64, .n = 96, .k = 32}),
                                         gemm_problem({.m = 128, .n = 64, .k = 256}),
                                         convolution_problem({.in_channels = 16,
                                                              .out_channels = 32,
                                                              .out_width = 14,
                                                              .out_height = 14,
                                                              .kernel_width = 3,
                                                              .kernel_height = 3})};
  const AcceleratorCatalogue catalogue(FORETOKEN_SOURCE_DIR "/data/accelerators");
  const AcceleratorDesign base = catalogue.design("gemm_array_16x16").design;
  const DesignSpace space(base, automatic_knobs(base.architecture), catalogue.library());
  constexpr size_t budgets[] = {40, 8, 40, 16};
  for (size_t run = 0; run < std::size(budgets); ++run) {
    const size_t p = run % problems.size();
    AcceleratorPlanQuestion asked{
        .work = {.layers = {{.name = "work", .problem = problems[p]}},
                 .constraints = [&](const Problem& problem) { return design_constraints(base, problem); },
                 .mapper = {.most_tries = 200}},
        .budget = {.evaluations = budgets[run]},
        .final_tries = budgets[run] < 40 ? 1'000 : 5'000};
    std::vector<AcceleratorPlan> plans;
    for (uint64_t seed = 1; seed <= 5; ++seed) {
      asked.seed = seed;
      asked.work.mapper.seed = seed;
      plans.push_back(plan_accelerator(asked, space));
      ASSERT_NE(plans.back().winner(), nullptr);
    }
    const auto value = [&](const AcceleratorPlan& plan) { return asked.objective.value(plan.winner()->costs.run); };
    const AcceleratorPlan& best = *std::ranges::min_element(plans, {}, value);
    for (const AcceleratorPlan& plan : plans) {
      if (plan.winner()->point == best.winner()->point) continue;
      // By its bound nothing is better than so much: no other seed can show the answer wrong.
      if (!plan.is_settled()) {
        ASSERT_TRUE(plan.bound);
        EXPECT_GE(value(best), plan.bound->value * (1 - 1e-9)) << "problem " << p;
        continue;
      }
      const double noise = std::max(plan.search_noise, best.search_noise);
      EXPECT_LE(value(plan), value(best) * (1 + noise) + 1e-9) << "problem " << p << ", noise " << noise;
      EXPECT_GT(plan.ties(asked.objective) + best.ties(asked.objective), 0U) << "problem " << p;
    }
  }
}

}  // namespace foretoken::accelerator_plan_slow_test
