#include "training/schedule/pipeline_schedule.h"

#include <algorithm>
#include <map>

#include <gtest/gtest.h>

#include "base/error.h"
#include "training/schedule/test_pipelines.h"

namespace foretoken::pipeline_schedule_test {

constexpr int64_t no_limit = int64_t{1} << 40;

// The run as its events tell it.
PipelineRun run_of_events(std::string_view schedule, const PipelineWork& work) {
  const PipelineTimeline timeline = pipeline_events(schedule, work, no_limit);
  EXPECT_EQ(timeline.micro_batches, work.micro_batches);
  const auto stages = static_cast<size_t>(work.stages);
  PipelineRun run{.busy = std::vector<double>(stages),
                  .first_start = std::vector<double>(stages, 1e300),
                  .last_end = std::vector<double>(stages),
                  .last_backward_start = std::vector<double>(stages, 1e300)};
  std::map<std::pair<int64_t, int64_t>, double> gradients_start;  // of the last that completes them, by stage and chunk
  for (const PipelineEvent& event : timeline.events) {
    const auto stage = static_cast<size_t>(event.stage);
    run.first_start[stage] = std::min(run.first_start[stage], event.start);
    run.last_end[stage] = std::max(run.last_end[stage], event.start + event.seconds);
    run.busy[stage] += event.seconds;
    if (event.kind == PipelineTaskKind::backward || event.kind == PipelineTaskKind::backward_weight) {
      gradients_start[{event.stage, event.chunk}] = event.start;
    }
  }
  for (const auto& [place, start] : gradients_start) {
    double& first = run.last_backward_start[static_cast<size_t>(place.first)];
    first = std::min(first, start);
  }
  return run;
}

void expect_same(const std::vector<double>& actual, const std::vector<double>& expected, const std::string& what) {
  ASSERT_EQ(actual.size(), expected.size()) << what;
  for (size_t i = 0; i < actual.size(); ++i) {
    EXPECT_NEAR(actual[i], expected[i], 1e-9 * expected[i]) << what << ", stage " << i;
  }
}

TEST(PipelineSchedule, a_compressed_run_equals_the_full_one) {
  for (const std::string& schedule : pipeline_schedule_names()) {
    RandomStream stream(1, schedule);
    for (const double unevenness : {1.0, 0.01, 1e-4, 0.0}) {
      for (int round = 0; round < 12; ++round) {
        const PipelineWork work = random_pipeline(schedule, stream, 1500, unevenness);
        const PipelineRun run = run_pipeline(schedule, work), full = run_of_events(schedule, work);
        const std::string what = described(schedule, work);
        expect_same(run.first_start, full.first_start, what);
        expect_same(run.last_end, full.last_end, what);
        expect_same(run.busy, full.busy, what);
        expect_same(run.last_backward_start, full.last_backward_start, what);
      }
    }
  }
}

TEST(PipelineSchedule, a_billion_micro_batches_take_no_longer_than_some) {
  for (const std::string& schedule : pipeline_schedule_names()) {
    RandomStream stream(2, schedule);
    for (const double unevenness : {1.0, 0.001, 0.0}) {
      PipelineWork work = random_pipeline(schedule, stream, 8, unevenness);
      work.micro_batches = int64_t{1} << 30;
      work.micro_batches -= work.micro_batches % (2 * work.stages);
      const PipelineRun run = run_pipeline(schedule, work);
      for (const double busy : run.busy) EXPECT_LE(busy, run.seconds * (1 + 1e-9)) << described(schedule, work);
    }
  }
}

TEST(PipelineSchedule, more_micro_batches_never_take_less_time) {
  for (const std::string& schedule : pipeline_schedule_names()) {
    RandomStream stream(3, schedule);
    for (int round = 0; round < 20; ++round) {
      PipelineWork work = random_pipeline(schedule, stream, 4);
      double before = 0;
      const int64_t first = work.micro_batches;
      for (; work.micro_batches < first + 40; ++work.micro_batches) {
        if (!why_not(schedule, work).empty()) continue;
        const double seconds = run_pipeline(schedule, work).seconds;
        EXPECT_GE(seconds, before * (1 - 1e-12)) << described(schedule, work);
        before = seconds;
      }
    }
  }
}

TEST(PipelineSchedule, one_stage_works_without_a_pause) {
  for (const std::string_view schedule : {"gpipe", "1f1b", "zb-h1", "zb-h2", "zb-v"}) {
    const PipelineWork work = runnable_pipeline(schedule, 1, 2, 10, {1, 2, 3});
    const PipelineRun run = run_pipeline(schedule, work);
    EXPECT_NEAR(run.seconds, 60.0 * static_cast<double>(work.virtual_stages), 1e-9) << schedule;
    EXPECT_NEAR(run.busy[0], run.seconds, 1e-9) << schedule;
  }
}

TEST(PipelineSchedule, gradients_are_reduced_from_the_last_backward_on) {
  // Two stages: the first still has its last backward to do when the last stage has ended.
  const PipelineRun one_chunk = run_pipeline("1f1b", runnable_pipeline("1f1b", 2, 1, 4, {1, 1, 1}));
  EXPECT_NEAR(one_chunk.last_backward_start[0], one_chunk.last_end[0] - 2, 1e-9);
  EXPECT_NEAR(one_chunk.last_backward_start[1], one_chunk.last_end[1] - 2, 1e-9);
  // With two chunks, those of the second chunk of a stage are complete first: two backwards of others come between.
  const PipelineRun two_chunks = run_pipeline("interleaved", runnable_pipeline("interleaved", 2, 2, 4, {1, 1, 1}));
  EXPECT_LT(two_chunks.last_backward_start[0], two_chunks.last_end[0] - 4);
  // Weight gradients that come last are what the reduction waits for.
  const PipelineRun split = run_pipeline("zb-h1", runnable_pipeline("zb-h1", 2, 1, 4, {1, 1, 1}));
  EXPECT_NEAR(split.last_backward_start[1], split.last_end[1] - 1, 1e-9);
}

TEST(PipelineSchedule, stages_that_end_apart_count_their_longest_span) {
  const PipelineRun run = run_pipeline("zb-h2", runnable_pipeline("zb-h2", 4, 1, 16, {1, 1, 1}));
  EXPECT_NEAR(run.seconds, 48, 1e-9);
  EXPECT_NEAR(run.last_end[3], 51, 1e-9);
  EXPECT_NEAR(run.first_start[3], 3, 1e-9);
}

TEST(PipelineSchedule, pairs_that_overlap_save_time) {
  PipelineWork work = runnable_pipeline("dualpipe", 4, 1, 32, {1, 1, 1});
  const double apart = run_pipeline("dualpipe", work).seconds;
  work.overlapped_pair = 0.8;
  const double together = run_pipeline("dualpipe", work).seconds;
  EXPECT_LT(together, 0.85 * apart);
  EXPECT_GT(together, 0.8 * apart);
}

TEST(PipelineSchedule, events_beyond_the_limit_are_left_out_by_micro_batch) {
  const PipelineWork work = runnable_pipeline("interleaved", 4, 2, 400);
  const PipelineTimeline timeline = pipeline_events("interleaved", work, 1000);
  EXPECT_EQ(timeline.micro_batches, 40);
  EXPECT_LE(timeline.events.size(), 1000U);
  EXPECT_EQ(pipeline_events("interleaved", work, no_limit).micro_batches, 400);
}

TEST(PipelineSchedule, a_limit_below_the_least_pipeline_still_shows_that) {
  const PipelineWork work = runnable_pipeline("dualpipe", 4, 1, 64);
  EXPECT_EQ(pipeline_events("dualpipe", work, 1).micro_batches, 8);
  EXPECT_EQ(pipeline_events("1f1b", runnable_pipeline("1f1b", 4, 1, 64), 1).micro_batches, 1);
}

TEST(PipelineSchedule, work_that_a_schedule_cannot_run_is_refused_with_the_reason) {
  try {
    run_pipeline("interleaved", {.stages = 4, .virtual_stages = 2, .micro_batches = 6});
    FAIL() << "6 micro-batches in groups of 4";
  } catch (const InputError& error) {
    EXPECT_EQ(error.problem().value, "interleaved");
    EXPECT_NE(error.problem().expected.find("leave a last group of 2"), std::string::npos) << error.what();
  }
  EXPECT_THROW(run_pipeline("1f1b", {.stages = 2, .virtual_stages = 2, .micro_batches = 4}), InputError);
  EXPECT_NE(why_not("1f1b", {.micro_batches = 0}), "");
}

}  // namespace foretoken::pipeline_schedule_test
