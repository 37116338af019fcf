#include "training/schedule/kinds/list.h"

#include <algorithm>
#include <map>
#include <tuple>

#include <gtest/gtest.h>

#include "base/error.h"
#include "training/schedule/test_pipelines.h"

namespace foretoken::kinds_list_test {

TEST(PipelineKinds, do_each_task_once_on_the_stage_that_holds_the_chunk) {
  for (const PipelineKind& kind : pipeline_kinds()) {
    RandomStream stream(1, kind.name);
    for (int round = 0; round < 20; ++round) {
      const PipelineWork work = random_pipeline(kind.name, stream, 30);
      std::map<std::tuple<int64_t, int64_t, char>, int> done;
      const StageTasks tasks = kind.tasks(work);
      for (size_t stage = 0; stage < tasks.size(); ++stage) {
        for (const PipelineTask& task : tasks[stage]) {
          EXPECT_EQ(stage_of_chunk(kind.name, work, task.chunk, task.micro_batch), static_cast<int64_t>(stage));
          const bool splits = task.kind == PipelineTaskKind::backward_input;
          const bool weights = task.kind == PipelineTaskKind::backward_weight;
          const bool fused = task.kind == PipelineTaskKind::backward;
          if (task.kind == PipelineTaskKind::forward) ++done[{task.chunk, task.micro_batch, 'F'}];
          if (splits || fused) ++done[{task.chunk, task.micro_batch, 'B'}];
          if (weights || fused) ++done[{task.chunk, task.micro_batch, 'W'}];
          EXPECT_TRUE(kind.splits_backward || (!splits && !weights)) << kind.name;
        }
      }
      EXPECT_EQ(static_cast<int64_t>(done.size()), 3 * work.stages * work.virtual_stages * work.micro_batches)
          << described(kind.name, work);
      for (const auto& [task, times] : done) EXPECT_EQ(times, 1) << described(kind.name, work);
    }
  }
}

// Chunks in flight on each of 4 stages with enough micro-batches; with 3 virtual stages where the schedule has them.
TEST(PipelineKinds, hold_as_many_activations_as_published) {
  const std::map<std::string, std::vector<int64_t>> published = {
      {"gpipe", {32, 32, 32, 32}},       // every micro-batch
      {"1f1b", {4, 3, 2, 1}},            // p - i
      {"interleaved", {15, 13, 11, 9}},  // p v + p - 1 on the first: p (1 + (p - 1) / (p v)) micro-batches
      {"zb-h1", {4, 3, 2, 1}},           // as 1F1B
      {"zb-h2", {7, 5, 3, 1}},           // 2p - 1
      {"zb-v", {8, 8, 8, 8}},            // p micro-batches of two chunks
      {"dualpipe", {5, 5, 5, 5}},        // p + 1
  };
  for (const std::string& schedule : pipeline_schedule_names()) {
    const PipelineWork work = runnable_pipeline(schedule, 4, schedule == "interleaved" ? 3 : 2, 32);
    EXPECT_EQ(run_pipeline(schedule, work).most_in_flight, published.at(schedule)) << schedule;
  }
}

TEST(PipelineKinds, hold_no_more_activations_than_there_are_micro_batches) {
  for (const std::string& schedule : pipeline_schedule_names()) {
    const PipelineWork work = runnable_pipeline(schedule, 4, 2, 1);
    for (const int64_t chunks : run_pipeline(schedule, work).most_in_flight) {
      EXPECT_LE(chunks, work.micro_batches * work.virtual_stages) << described(schedule, work);
    }
  }
}

TEST(PipelineKinds, the_order_of_1f1b_on_two_stages) {
  const auto forward = [](int64_t stage, int64_t i) { return pipeline_task(PipelineTaskKind::forward, stage, i); };
  const auto backward = [](int64_t stage, int64_t i) { return pipeline_task(PipelineTaskKind::backward, stage, i); };
  const StageTasks expected = {
      {forward(0, 0), forward(0, 1), backward(0, 0), forward(0, 2), backward(0, 1), backward(0, 2)},
      {forward(1, 0), backward(1, 0), forward(1, 1), backward(1, 1), forward(1, 2), backward(1, 2)}};
  EXPECT_EQ(pipeline_kind("1f1b").tasks(runnable_pipeline("1f1b", 2, 1, 3)), expected);
}

TEST(PipelineKinds, groups_of_micro_batches_may_be_longer_than_the_pipeline) {
  PipelineWork work{.stages = 4, .virtual_stages = 2, .micro_batches = 10};
  EXPECT_NE(why_not("interleaved", work), "");
  work.micro_batch_group = 5;
  EXPECT_EQ(why_not("interleaved", work), "");
  work.micro_batch_group = 6;  // and 4 left over
  EXPECT_EQ(why_not("interleaved", work), "");
  work.micro_batch_group = 7;
  EXPECT_NE(why_not("interleaved", work), "");
  work.micro_batch_group = 3;
  EXPECT_NE(why_not("interleaved", work), "");
}

TEST(PipelineKinds, a_longer_group_holds_more_and_hides_messages) {
  PipelineWork work = runnable_pipeline("interleaved", 4, 2, 32);
  work.send_forward = work.send_backward = 0.5;
  const PipelineRun tight = run_pipeline("interleaved", work);
  work.micro_batch_group = 8;
  const PipelineRun loose = run_pipeline("interleaved", work);
  EXPECT_GT(loose.most_in_flight[0], tight.most_in_flight[0]);
  EXPECT_LT(loose.seconds, tight.seconds);
}

TEST(PipelineKinds, folded_schedules_bring_the_last_chunk_back_to_the_first_stage) {
  const PipelineWork work = runnable_pipeline("zb-v", 4, 2, 8);
  EXPECT_EQ(stage_of_chunk("zb-v", work, 3), 3);
  EXPECT_EQ(stage_of_chunk("zb-v", work, 4), 3);
  EXPECT_EQ(stage_of_chunk("zb-v", work, 7), 0);
}

TEST(PipelineKinds, dualpipe_holds_the_model_twice_from_both_ends) {
  const PipelineWork work = runnable_pipeline("dualpipe", 4, 1, 8);
  EXPECT_EQ(stage_of_chunk("dualpipe", work, 0, 0), 0);
  EXPECT_EQ(stage_of_chunk("dualpipe", work, 0, 1), 3);
  EXPECT_EQ(model_copies("dualpipe"), 2);
  EXPECT_EQ(model_copies("1f1b"), 1);
  EXPECT_NE(why_not("dualpipe", {.stages = 3, .micro_batches = 8}), "");
  EXPECT_NE(why_not("dualpipe", {.stages = 4, .micro_batches = 6}), "");
  EXPECT_NE(why_not("dualpipe", {.stages = 4, .micro_batches = 9}), "");
}

TEST(PipelineKinds, an_unknown_name_is_answered_with_the_nearest) {
  try {
    pipeline_kind("zb-h");
    FAIL() << "zb-h is no schedule";
  } catch (const InputError& error) {
    EXPECT_EQ(error.problem().suggestion, "zb-h1");
  }
}

}  // namespace foretoken::kinds_list_test
