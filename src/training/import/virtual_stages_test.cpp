#include "training/import/virtual_stages.h"

#include <gtest/gtest.h>

namespace foretoken::virtual_stages_test {

TEST(VirtualStages, layers_of_chunks_and_ranks_make_up_the_model) {
  for (const int64_t pipeline : {1, 2, 4, 8}) {
    for (const int64_t of_chunk : {1, 2, 4}) {
      TrainingPlan plan;
      plan.parallel.pipeline = pipeline;
      EXPECT_EQ(virtual_stages_of(plan, 64, of_chunk, {.source = "x"}) * of_chunk * pipeline, 64);
    }
  }
}

TEST(VirtualStages, embedding_and_loss_count_where_the_plan_says_so) {
  TrainingPlan plan;
  plan.parallel.pipeline = 16;
  EXPECT_THROW(virtual_stages_of(plan, 126, 2, {.source = "x"}), InputError);
  plan.embedding_in_split = true;
  EXPECT_THROW(virtual_stages_of(plan, 126, 2, {.source = "x"}), InputError);
  plan.loss_in_split = true;
  EXPECT_EQ(virtual_stages_of(plan, 126, 2, {.source = "x"}), 4);
}

TEST(VirtualStages, what_does_not_divide_is_refused_in_words) {
  TrainingPlan plan;
  plan.parallel.pipeline = 4;
  try {
    virtual_stages_of(plan, 32, 3, {.field = "stages"});
    FAIL();
  } catch (const InputError& error) {
    EXPECT_EQ(error.problem().field, "stages");
    EXPECT_EQ(error.problem().value, "3");
    EXPECT_NE(error.problem().expected.find("8 layers of a pipeline rank"), std::string::npos) << error.what();
  }
  plan.first_stage_layers = 5;
  EXPECT_THROW(virtual_stages_of(plan, 32, 2, {.field = "stages"}), InputError);
}

}  // namespace foretoken::virtual_stages_test
