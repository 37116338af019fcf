#include "training/schedule/pipeline_simulation.h"

#include <map>
#include <tuple>

#include <gtest/gtest.h>

#include "training/schedule/test_pipelines.h"

namespace foretoken::pipeline_simulation_test {

template <typename Check>
void for_random_pipelines(Check check) {
  for (const PipelineKind& kind : pipeline_kinds()) {
    RandomStream stream(1, kind.name);
    for (int round = 0; round < 15; ++round) check(kind, random_pipeline(kind.name, stream, 40));
  }
}

TEST(PipelineSimulation, tasks_of_a_stage_never_overlap_and_sum_to_its_work) {
  for_random_pipelines([](const PipelineKind& kind, const PipelineWork& work) {
    std::vector<double> free_at(static_cast<size_t>(work.stages)), busy(free_at.size()), expected(free_at.size());
    for (const PipelineEvent& event : pipeline_events(kind.name, work).events) {
      const auto stage = static_cast<size_t>(event.stage);
      EXPECT_GE(event.start, free_at[stage] - 1e-9) << described(kind.name, work);
      free_at[stage] = event.start + event.seconds;
      busy[stage] += event.seconds;
    }
    if (work.overlapped_pair < 1) return;
    for (int64_t i = 0; i < work.micro_batches; ++i) {
      for (size_t chunk = 0; chunk < work.chunks.size(); ++chunk) {
        const int64_t stage = stage_of_chunk(kind.name, work, static_cast<int64_t>(chunk), i);
        expected[static_cast<size_t>(stage)] += work.chunks[chunk].sum();
      }
    }
    for (size_t i = 0; i < busy.size(); ++i) EXPECT_NEAR(busy[i], expected[i], 1e-8) << described(kind.name, work);
  });
}

TEST(PipelineSimulation, no_task_starts_before_its_data_have_arrived) {
  for_random_pipelines([](const PipelineKind& kind, const PipelineWork& work) {
    using Key = std::tuple<int64_t, int64_t, char>;
    std::map<Key, PipelineEvent> done;
    for (const PipelineEvent& event : pipeline_events(kind.name, work).events) {
      const char letter = event.kind == PipelineTaskKind::forward           ? 'F'
                          : event.kind == PipelineTaskKind::backward_weight ? 'W'
                                                                            : 'B';
      done[{event.chunk, event.micro_batch, letter}] = event;
    }
    const auto expect_after = [&](const PipelineEvent& event, const Key& needed, double send_seconds) {
      ASSERT_TRUE(done.contains(needed)) << described(kind.name, work);
      const PipelineEvent& other = done.at(needed);
      const double arrives = other.start + other.seconds + (other.stage == event.stage ? 0 : send_seconds);
      EXPECT_GE(event.start, arrives - 1e-9) << described(kind.name, work);
    };
    const auto last_chunk = static_cast<int64_t>(work.chunks.size()) - 1;
    for (const auto& [key, event] : done) {
      const auto [chunk, micro_batch, letter] = key;
      if (letter == 'F' && chunk > 0) expect_after(event, {chunk - 1, micro_batch, 'F'}, work.send_forward);
      if (letter == 'B') expect_after(event, {chunk, micro_batch, 'F'}, 0);
      if (letter == 'B' && chunk < last_chunk) {
        expect_after(event, {chunk + 1, micro_batch, 'B'}, work.send_backward);
      }
      if (letter == 'W') expect_after(event, {chunk, micro_batch, 'B'}, 0);
    }
  });
}

TEST(PipelineSimulation, every_task_starts_as_early_as_it_can) {
  for_random_pipelines([](const PipelineKind& kind, const PipelineWork& work) {
    PipelineSimulation simulation(kind, work);
    simulation.run_before(work.micro_batches);
    for (const std::vector<PipelineTask>& tasks : simulation.tasks()) {
      for (size_t i = 0; i < tasks.size(); ++i) {
        if (tasks[i].pairing != TaskPairing::alone) continue;
        const std::array<double, 2> data = simulation.data_times(tasks[i]);
        const double stage_free = i == 0 ? 0 : simulation.end_of(tasks[i - 1]);
        EXPECT_EQ(simulation.start_of(tasks[i]), std::max({stage_free, data[0], data[1]}));
      }
    }
  });
}

TEST(PipelineSimulation, what_is_run_in_parts_ends_as_what_is_run_at_once) {
  for_random_pipelines([](const PipelineKind& kind, const PipelineWork& work) {
    PipelineSimulation at_once(kind, work), in_parts(kind, work);
    at_once.run_before(work.micro_batches);
    for (int64_t i = 0; i <= work.micro_batches; i += 3) in_parts.run_before(i);
    in_parts.run_before(work.micro_batches);
    for (const std::vector<PipelineTask>& tasks : at_once.tasks()) {
      for (const PipelineTask& task : tasks) EXPECT_EQ(in_parts.end_of(task), at_once.end_of(task));
    }
  });
}

}  // namespace foretoken::pipeline_simulation_test
