#include "plan/mixed_training_search.h"

#include <gtest/gtest.h>

#include "model/catalogue.h"
#include "training/test_machine.h"

namespace foretoken::mixed_training_search_test {

using training_test::library_cluster;
using training_test::plain_stack;
using training_test::roofline_machine;

TrainingPool pool(const std::string& cluster, int64_t devices, int64_t all) {
  TrainingQuestion question{.job = {.model = ModelCatalogue(FORETOKEN_SOURCE_DIR "/data/models").model("Llama-3.1-8B")},
                            .plan = {.parallel = {}, .global_batch = 64},
                            .devices = all,
                            .stack = plain_stack(),
                            .cluster = library_cluster(static_cast<int>((all + 7) / 8), cluster),
                            .convention = &flop_convention_named("model-3x-causal-half")};
  question.formats = usual_formats(question.job.recipe, question.job.lora, question.stack.attention);
  auto machine = roofline_machine(question.cluster);
  return {.question = std::move(question), .machine = std::move(machine), .devices = devices};
}

double fastest(const std::string& first, const std::string& second) {
  std::vector<TrainingPool> pools;
  pools.push_back(pool(first, 8, 16));
  pools.push_back(pool(second, 8, 16));
  const MixedSearchResult result = search_mixed_plans(pools, {.best = 5});
  EXPECT_TRUE(result.best.front().estimate.fits);
  EXPECT_GT(result.tried, 1);
  EXPECT_LE(result.best.size(), 5U);
  for (size_t i = 1; i < result.best.size(); ++i) {
    if (result.best[i].estimate.fits) {
      EXPECT_GE(result.best[i].estimate.seconds.value, result.best[i - 1].estimate.seconds.value);
    }
  }
  EXPECT_EQ(pools[0].question.plan.parallel.tensor, result.best.front().plan.parallel.tensor);
  return result.best.front().estimate.seconds.value;
}

TEST(MixedTrainingSearch, two_kinds_are_between_twice_the_slower_and_twice_the_faster) {
  const double fast = fastest("h100_ib_rail", "h100_ib_rail"), slow = fastest("a100_ib_rail", "a100_ib_rail");
  const double both = fastest("h100_ib_rail", "a100_ib_rail");
  EXPECT_GT(both, fast);
  EXPECT_LT(both, slow);
}

TEST(MixedTrainingSearch, sizes_that_no_pool_can_divide_are_refused) {
  std::vector<TrainingPool> pools;
  pools.push_back(pool("h100_ib_rail", 3, 8));
  pools.push_back(pool("a100_ib_rail", 5, 8));
  TrainingPlanOptions options;
  options.choices.tensor = 4;
  options.choices.pipeline = 1;
  EXPECT_THROW(search_mixed_plans(pools, options), InputError);
}

}  // namespace foretoken::mixed_training_search_test
