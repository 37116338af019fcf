#include "training/schedule/pipeline_schedule.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <tuple>

#include <gtest/gtest.h>

#include "base/error.h"
#include "base/random.h"
#include "training/schedule/pipeline_kind.h"
#include "training/schedule/repetition.h"

namespace foretoken {
namespace {

// Numbers of virtual stages and micro-batches that the schedule can run.
PipelineWork runnable_work(std::string_view schedule, int64_t stages, int64_t virtual_stages, int64_t micro_batches) {
  PipelineWork work{.stages = stages, .virtual_stages = virtual_stages, .micro_batches = micro_batches};
  for (work.virtual_stages = virtual_stages; work.virtual_stages >= 1; --work.virtual_stages) {
    for (work.micro_batches = micro_batches; work.micro_batches < micro_batches + 3 * stages; ++work.micro_batches) {
      if (why_not(schedule, work).empty()) {
        work.chunks.resize(static_cast<size_t>(stages * work.virtual_stages));
        return work;
      }
    }
  }
  work.micro_batches = 0;
  return work;
}

PipelineWork random_work(std::string_view schedule, RandomStream& stream, int64_t most_micro_batches) {
  PipelineWork work;
  do {
    work = runnable_work(schedule, 1 + static_cast<int64_t>(stream.below(8)), 2 + static_cast<int64_t>(stream.below(3)),
                         1 + static_cast<int64_t>(stream.below(static_cast<uint64_t>(most_micro_batches))));
  } while (work.micro_batches == 0);
  for (ChunkTimes& times : work.chunks) {
    times = {.forward = stream.uniform(0.5, 1.5),
             .backward_input = stream.uniform(0.5, 2),
             .backward_weight = stream.uniform(0, 1.5)};
  }
  if (stream.below(2) == 0) work.overlapped_pair = stream.uniform(0.6, 1);
  if (stream.below(2) == 0) {
    work.send_forward = stream.uniform(0, 0.5);
    work.send_backward = stream.uniform(0, 0.5);
  }
  return work;
}

std::string described(std::string_view schedule, const PipelineWork& work) {
  return std::string(schedule) + " stages " + std::to_string(work.stages) + " virtual " +
         std::to_string(work.virtual_stages) + " micro-batches " + std::to_string(work.micro_batches);
}

void expect_near_all(const std::vector<double>& actual, const std::vector<double>& expected, const std::string& what) {
  ASSERT_EQ(actual.size(), expected.size()) << what;
  for (size_t i = 0; i < actual.size(); ++i)
    EXPECT_NEAR(actual[i], expected[i], 1e-9 * (1 + expected[i])) << what << " stage " << i;
}

TEST(PipelineSchedule, every_kind_does_each_task_once_on_the_stage_that_holds_the_chunk) {
  for (const PipelineKind& kind : pipeline_kinds()) {
    RandomStream stream(1, kind.name);
    for (int round = 0; round < 20; ++round) {
      const PipelineWork work = random_work(kind.name, stream, 30);
      std::map<std::tuple<int64_t, int64_t, char>, int> done;
      const StageTasks tasks = kind.tasks(work);
      for (size_t stage = 0; stage < tasks.size(); ++stage) {
        for (const PipelineTask& task : tasks[stage]) {
          EXPECT_EQ(kind.stage_of(work, task.chunk, task.micro_batch), static_cast<int64_t>(stage));
          if (task.kind == PipelineTaskKind::forward) ++done[{task.chunk, task.micro_batch, 'F'}];
          if (task.kind == PipelineTaskKind::backward || task.kind == PipelineTaskKind::backward_input) {
            ++done[{task.chunk, task.micro_batch, 'B'}];
          }
          if (task.kind == PipelineTaskKind::backward || task.kind == PipelineTaskKind::backward_weight) {
            ++done[{task.chunk, task.micro_batch, 'W'}];
          }
        }
      }
      EXPECT_EQ(static_cast<int64_t>(done.size()), 3 * work.stages * work.virtual_stages * work.micro_batches)
          << described(kind.name, work);
      for (const auto& [task, times] : done) EXPECT_EQ(times, 1) << described(kind.name, work);
    }
  }
}

TEST(PipelineSchedule, a_compressed_run_equals_the_full_one) {
  for (const PipelineKind& kind : pipeline_kinds()) {
    RandomStream stream(2, kind.name);
    for (int round = 0; round < 40; ++round) {
      const PipelineWork work = random_work(kind.name, stream, 600);
      const PipelineRun run = run_pipeline(kind.name, work);
      const PipelineTimeline full = pipeline_events(kind.name, work, 1 << 30);
      ASSERT_EQ(full.micro_batches, work.micro_batches);
      std::vector<double> first(static_cast<size_t>(work.stages), 1e300), last(first.size()), busy(first.size());
      for (const PipelineEvent& event : full.events) {
        const auto stage = static_cast<size_t>(event.stage);
        first[stage] = std::min(first[stage], event.start);
        last[stage] = std::max(last[stage], event.start + event.seconds);
        busy[stage] += event.seconds;
      }
      const std::string what = described(kind.name, work);
      expect_near_all(run.first_start, first, what + " first start");
      expect_near_all(run.last_end, last, what + " last end");
      expect_near_all(run.busy, busy, what + " busy");
    }
  }
}

}  // namespace
}  // namespace foretoken
