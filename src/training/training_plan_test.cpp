#include "training/training_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "base/error.h"
#include "model/step_test_models.h"

namespace foretoken::training_plan_test {

using step_test::llama_like;
using step_test::mixtral_like;
using testing::ElementsAre;
using testing::HasSubstr;

std::vector<int64_t> sizes_of(const std::vector<ChunkLayers>& chunks) {
  std::vector<int64_t> sizes;
  for (const ChunkLayers& chunk : chunks) sizes.push_back(chunk.count);
  return sizes;
}

std::vector<std::string> fields_of(const std::vector<PlanProblem>& problems) {
  std::vector<std::string> fields;
  for (const PlanProblem& problem : problems) fields.push_back(problem.field);
  return fields;
}

TEST(TrainingPlanNames, every_name_reads_back) {
  for (const std::string& name : recompute_names()) EXPECT_EQ(recompute_name(*recompute_from_name(name)), name);
  for (const std::string& name : sharding_names()) EXPECT_EQ(sharding_name(*sharding_from_name(name)), name);
  for (const std::string& name : context_exchange_names()) {
    EXPECT_EQ(context_exchange_name(*context_exchange_from_name(name)), name);
  }
  EXPECT_EQ(recompute_from_name("some"), std::nullopt);
}

TEST(TrainingPlanChunks, hold_every_layer_once_and_differ_by_one_at_most) {
  for (const int64_t stages : {1, 2, 3, 4, 7}) {
    for (const int64_t chunks_each : {1, 2, 3}) {
      for (int64_t layers = stages * chunks_each; layers < 60; ++layers) {
        const TrainingPlan plan{.parallel = {.pipeline = stages}, .virtual_stages = chunks_each};
        const std::vector<ChunkLayers> chunks = chunk_layers(plan, layers);
        ASSERT_EQ(std::ssize(chunks), stages * chunks_each);
        int64_t next = 0;
        for (const ChunkLayers& chunk : chunks) {
          EXPECT_EQ(chunk.first, next);
          next += chunk.count;
          EXPECT_EQ(chunk.embedding, &chunk == &chunks.front());
          EXPECT_EQ(chunk.head, &chunk == &chunks.back());
        }
        EXPECT_EQ(next, layers);
        const std::vector<int64_t> sizes = sizes_of(chunks);
        const auto [least, most] = std::minmax_element(sizes.begin(), sizes.end());
        EXPECT_LE(*most - *least, 1);
        EXPECT_EQ(sizes.back(), *least);
      }
    }
  }
}

TEST(TrainingPlanChunks, at_the_ends_are_the_smaller_ones) {
  EXPECT_THAT(sizes_of(chunk_layers({.parallel = {.pipeline = 4}}, 14)), ElementsAre(3, 4, 4, 3));
  EXPECT_THAT(sizes_of(chunk_layers({.parallel = {.pipeline = 4}, .virtual_stages = 2}, 15)),
              ElementsAre(2, 2, 2, 2, 2, 2, 2, 1));
}

// Megatron-LM, --account-for-embedding-in-pipeline-split and --account-for-loss-in-pipeline-split.
TEST(TrainingPlanChunks, count_embedding_and_loss_as_layers_where_asked) {
  TrainingPlan plan{.parallel = {.pipeline = 4}, .virtual_stages = 2};
  plan.embedding_in_split = plan.loss_in_split = true;
  EXPECT_THAT(sizes_of(chunk_layers(plan, 14)), ElementsAre(1, 2, 2, 2, 2, 2, 2, 1));
  plan.embedding_in_split = false;
  EXPECT_THAT(sizes_of(chunk_layers(plan, 15)), ElementsAre(2, 2, 2, 2, 2, 2, 2, 1));
}

TEST(TrainingPlanChunks, follow_the_layers_named_for_the_outer_stages) {
  TrainingPlan plan{.parallel = {.pipeline = 4}};
  plan.first_stage_layers = 3;
  EXPECT_THAT(sizes_of(chunk_layers(plan, 15)), ElementsAre(3, 4, 4, 4));
  plan.last_stage_layers = 2;
  EXPECT_THAT(sizes_of(chunk_layers(plan, 15)), ElementsAre(3, 5, 5, 2));
  plan.virtual_stages = 2;
  plan.first_stage_layers = 4;
  EXPECT_THAT(sizes_of(chunk_layers(plan, 18)), ElementsAre(2, 3, 3, 1, 2, 3, 3, 1));
}

TEST(TrainingPlanProblems, are_none_in_a_plan_that_can_run) {
  const TrainingPlan plan{.parallel = {.tensor = 2, .pipeline = 5, .data = 2, .context = 2, .sequence = true},
                          .micro_batch = 2,
                          .global_batch = 20,
                          .schedule = "interleaved",
                          .virtual_stages = 2,
                          .sharding = Sharding::parameters,
                          .shard_ranks = 2,
                          .recompute = Recompute::full,
                          .recompute_layers = 1};
  EXPECT_TRUE(plan_problems(llama_like(), 4096, plan, 40).empty());
  EXPECT_TRUE(is_valid_plan(llama_like(), 4096, plan, 40));
  EXPECT_NO_THROW(check_plan(llama_like(), 4096, plan, 0));
}

TEST(TrainingPlanProblems, are_all_listed_in_one_error) {
  const TrainingPlan plan{.parallel = {.tensor = 6, .pipeline = 12, .data = 3, .context = 2, .sequence = true},
                          .micro_batch = 2,
                          .global_batch = 10,
                          .sharding = Sharding::optimizer,
                          .shard_ranks = 4};
  const std::vector<PlanProblem> problems = plan_problems(llama_like(), 1002, plan, 128);
  EXPECT_THAT(fields_of(problems),
              ElementsAre("tensor_model_parallel_size", "tensor_model_parallel_size", "tensor_model_parallel_size",
                          "pipeline_model_parallel_size", "pipeline_model_parallel_size", "global_batch_size",
                          "seq_length", "seq_length", "shard_ranks"));
  try {
    check_plan(llama_like(), 1002, plan, 128);
    FAIL() << "a plan that cannot run was accepted";
  } catch (const InputError& error) {
    for (const PlanProblem& problem : problems) EXPECT_THAT(error.what(), HasSubstr(problem.why));
    EXPECT_THAT(error.what(), HasSubstr("{global_batch_size} = 10: it is not a multiple of micro-batch 2 x 3"));
    EXPECT_THAT(error.what(), HasSubstr("nearest: 12, 6, 18"));
  }
}

TEST(TrainingPlanProblems, name_values_that_work_all_else_equal) {
  struct Case {
    TrainingPlan plan;
    std::string field;
    std::vector<std::string> nearest;
  };
  const Case cases[] = {
      {{.parallel = {.tensor = 3}}, "tensor_model_parallel_size", {"2", "4", "1"}},
      {{.parallel = {.pipeline = 11}}, "pipeline_model_parallel_size", {"8", "7", "6"}},
      {{.virtual_stages = 2}, "num_virtual_stages_per_pipeline_rank", {"1"}},
      {{.parallel = {.data = 9}, .global_batch = 9}, "data_parallel_size", {"3", "1"}},
      {{.parallel = {.tensor = 16}}, "tensor_model_parallel_size", {"8", "4", "2"}},
      {{.recompute = Recompute::full, .recompute_layers = 12}, "recompute_num_layers", {"10", "9", "8"}},
      {{.parallel = {.pipeline = 0}}, "pipeline_model_parallel_size", {"1"}},
  };
  for (const Case& one : cases) {
    const std::vector<PlanProblem> problems = plan_problems(llama_like(), 4096, one.plan, 8);
    ASSERT_FALSE(problems.empty()) << one.field;
    EXPECT_FALSE(is_valid_plan(llama_like(), 4096, one.plan, 8)) << one.field;
    EXPECT_EQ(problems.front().field, one.field);
    EXPECT_EQ(problems.front().nearest, one.nearest) << one.field;
  }
}

TEST(TrainingPlanProblems, count_experts_and_what_holds_them) {
  const std::vector<PlanProblem> problems =
      plan_problems(mixtral_like(), 4096, {.parallel = {.data = 12, .expert = 6}, .global_batch = 12}, 0);
  ASSERT_THAT(fields_of(problems), ElementsAre("expert_model_parallel_size"));
  EXPECT_THAT(problems.front().nearest, ElementsAre("4", "2", "1"));
}

// Llama 3.1 405B: 126 layers in 128 chunks, the first with the embedding alone and the last with the head alone.
TEST(TrainingPlanProblems, are_none_where_only_the_outer_chunks_have_no_layer) {
  TrainingPlan plan{.parallel = {.pipeline = 3}, .global_batch = 6, .schedule = "interleaved", .virtual_stages = 4};
  EXPECT_TRUE(plan_problems(llama_like(), 4096, plan, 0).empty());
  EXPECT_EQ(sizes_of(chunk_layers(plan, 10)), (std::vector<int64_t>{0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0}));
  plan.virtual_stages = 5;
  EXPECT_THAT(fields_of(plan_problems(llama_like(), 4096, plan, 0)),
              ElementsAre("num_virtual_stages_per_pipeline_rank"));
}

TEST(TrainingPlanProblems, include_stages_left_without_layers) {
  TrainingPlan plan{.parallel = {.pipeline = 4}};
  plan.first_stage_layers = 8;
  EXPECT_THAT(fields_of(plan_problems(llama_like(), 4096, plan, 0)), ElementsAre("decoder_first_pipeline_num_layers"));
  plan.first_stage_layers = 7;
  EXPECT_TRUE(plan_problems(llama_like(), 4096, plan, 0).empty());
  plan.first_stage_layers.reset();
  plan.last_stage_layers = 20;
  EXPECT_THAT(fields_of(plan_problems(llama_like(), 4096, plan, 0)), ElementsAre("decoder_last_pipeline_num_layers"));
}

TEST(TrainingPlanProblems, include_what_the_schedule_cannot_run) {
  TrainingPlan plan{.parallel = {.pipeline = 2}, .global_batch = 4, .virtual_stages = 2};
  std::vector<PlanProblem> problems = plan_problems(llama_like(), 4096, plan, 0);
  ASSERT_THAT(fields_of(problems), ElementsAre("pipeline_schedule"));
  EXPECT_THAT(problems.front().nearest, ElementsAre("interleaved"));
  plan.schedule = "interleavd";
  plan.micro_batch = 3;
  problems = plan_problems(llama_like(), 4096, plan, 0);
  ASSERT_THAT(fields_of(problems), ElementsAre("global_batch_size", "pipeline_schedule"));
  EXPECT_THAT(problems.back().nearest, ElementsAre("interleaved"));
  EXPECT_FALSE(is_valid_plan(llama_like(), 4096, plan, 0));
}

TEST(TrainingPlanProblems, include_chunks_that_a_schedule_does_not_have) {
  for (const std::string schedule : {"dualpipe", "zb-v", "zb-h1", "1f1b"}) {
    const TrainingPlan plan{.parallel = {.pipeline = 2}, .global_batch = 8, .schedule = schedule, .virtual_stages = 4};
    EXPECT_THAT(fields_of(plan_problems(llama_like(), 4096, plan, 0)), ElementsAre("pipeline_schedule")) << schedule;
  }
}

TEST(TrainingPlanProblems, leave_out_sequence_parallelism_without_tensor_ranks) {
  EXPECT_TRUE(plan_problems(llama_like(), 1001, {.parallel = {.sequence = true}}, 0).empty());
}

}  // namespace foretoken::training_plan_test
