#include "training/schedule/closed_form.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "training/schedule/test_pipelines.h"

namespace foretoken::closed_form_test {

TEST(ClosedForm, bubbles_of_even_stages_are_those_of_the_formula) {
  for (const std::string& schedule : pipeline_schedule_names()) {
    RandomStream stream(1, schedule);
    int compared = 0;
    for (int round = 0; round < 200; ++round) {
      // Whole sixteenths, so that sums are exact. Formulas of some schedules want some times to be the same.
      const auto sixteenths = [&] { return static_cast<double>(4 + stream.below(40)) / 16; };
      ChunkTimes times{sixteenths(), sixteenths(), sixteenths()};
      if (stream.below(2) == 0) times.backward_input = times.forward;
      if (stream.below(2) == 0) times.backward_weight = times.forward;
      PipelineWork work = runnable_pipeline(schedule, 1 + static_cast<int64_t>(stream.below(9)),
                                            1 + static_cast<int64_t>(stream.below(4)),
                                            1 + static_cast<int64_t>(stream.below(80)), times);
      if (work.micro_batches == 0) continue;
      if (stream.below(2) == 0) work.overlapped_pair = 0.75;
      const std::optional<double> bubble = even_bubble_seconds(schedule, work);
      if (!bubble) continue;
      const PipelineRun run = run_pipeline(schedule, work);
      EXPECT_EQ(run.seconds - *std::min_element(run.busy.begin(), run.busy.end()), *bubble)
          << described(schedule, work) << ", F " << times.forward << " B " << times.backward_input << " W "
          << times.backward_weight;
      ++compared;
    }
    EXPECT_GT(compared, 15) << schedule;
  }
}

TEST(ClosedForm, bubbles_of_equal_thirds_are_the_published_ones) {
  // F = B = W = 1 on 8 stages: 1F1B idles for 3 x 7, ZB-H1 for a third of it.
  const auto bubble = [](std::string_view schedule, int64_t virtual_stages) {
    return even_bubble_seconds(schedule, runnable_pipeline(schedule, 8, virtual_stages, 64)).value();
  };
  EXPECT_EQ(bubble("gpipe", 1), 21);
  EXPECT_EQ(bubble("1f1b", 1), 21);
  EXPECT_EQ(bubble("interleaved", 4), 21);  // of chunks a quarter as long
  EXPECT_EQ(bubble("zb-h1", 1), 7);
  EXPECT_EQ(bubble("zb-h2", 1), 0);
  EXPECT_EQ(bubble("zb-v", 2), 0);
  EXPECT_EQ(bubble("dualpipe", 1), 6);
}

TEST(ClosedForm, the_bound_is_never_above_the_exact_time) {
  for (const std::string& schedule : pipeline_schedule_names()) {
    RandomStream stream(2, schedule);
    for (int round = 0; round < 100; ++round) {
      const PipelineWork work = random_pipeline(schedule, stream, 60);
      const double bound = pipeline_seconds_bound(schedule, work), exact = run_pipeline(schedule, work).seconds;
      EXPECT_LE(bound, exact * (1 + 1e-9)) << described(schedule, work);
      EXPECT_GE(bound, 0.5 * exact) << described(schedule, work);
    }
  }
}

TEST(ClosedForm, the_bound_is_exact_for_gpipe) {
  RandomStream stream(3, "gpipe");
  for (int round = 0; round < 50; ++round) {
    const PipelineWork work = random_pipeline("gpipe", stream, 60);
    const double exact = run_pipeline("gpipe", work).seconds;
    EXPECT_NEAR(pipeline_seconds_bound("gpipe", work), exact, 1e-9 * exact) << described("gpipe", work);
  }
}

TEST(ClosedForm, the_bound_is_exact_for_even_chunks_of_fused_schedules) {
  for (const std::string_view schedule : {"1f1b", "interleaved"}) {
    for (const int64_t stages : {2, 3, 8}) {
      const PipelineWork work = runnable_pipeline(schedule, stages, 3, 24, {1, 1.5, 0.75});
      EXPECT_NEAR(pipeline_seconds_bound(schedule, work), run_pipeline(schedule, work).seconds, 1e-9);
    }
  }
}

}  // namespace foretoken::closed_form_test
