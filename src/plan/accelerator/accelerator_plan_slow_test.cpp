#include <gtest/gtest.h>

#include <algorithm>

#include "accelerator/formats/designs.h"
#include "accelerator/formats/mapper_constraints.h"
#include "accelerator/problem.h"
#include "plan/accelerator/accelerator_plan.h"

namespace foretoken::accelerator_plan_slow_test {

// Other seeds of the searches of designs and of mappings: the same winner, or one that is tied with it.
TEST(AcceleratorPlanSeeds, five_seeds_have_one_winner_or_say_that_it_is_tied) {
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
  for (size_t p = 0; p < problems.size(); ++p) {
    AcceleratorPlanQuestion asked{
        .work = {.layers = {{.name = "work", .problem = problems[p]}},
                 .constraints = [&](const Problem& problem) { return design_constraints(base, problem); },
                 .mapper = {.most_tries = 200}},
        .budget = {.evaluations = 40},
        .final_tries = 5'000};
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
      const double noise = std::max(plan.search_noise, best.search_noise);
      EXPECT_LE(value(plan), value(best) * (1 + noise) + 1e-9) << "problem " << p << ", noise " << noise;
      EXPECT_GT(plan.ties(asked.objective) + best.ties(asked.objective), 0U) << "problem " << p;
    }
  }
}

}  // namespace foretoken::accelerator_plan_slow_test
