#include "training/schedule/repetition.h"

#include <gtest/gtest.h>

#include "training/schedule/test_pipelines.h"

namespace foretoken::repetition_test {

int64_t under_way(std::string_view schedule, const PipelineWork& work) {
  return micro_batches_under_way(pipeline_kind(schedule).tasks(work));
}

TEST(Repetition, micro_batches_are_under_way_from_their_first_task_to_their_last) {
  EXPECT_EQ(under_way("1f1b", runnable_pipeline("1f1b", 4, 1, 20)), 4);
  EXPECT_EQ(under_way("gpipe", runnable_pipeline("gpipe", 4, 1, 20)), 20);
  EXPECT_EQ(under_way("zb-h1", runnable_pipeline("zb-h1", 4, 1, 20)), 4) << "weight gradients that wait count too";
  EXPECT_EQ(under_way("1f1b", runnable_pipeline("1f1b", 4, 1, 2)), 2);
}

TEST(Repetition, even_stages_go_on_for_ever) {
  const PipelineKind& kind = pipeline_kind("1f1b");
  const PipelineWork work = runnable_pipeline("1f1b", 4, 1, 40);
  PipelineSimulation simulation(kind, work);
  simulation.run_before(30);
  const std::optional<Repetition> found = repetition(simulation, under_way("1f1b", work), 1, 1'000'000);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->cycle, 1);
  EXPECT_EQ(found->times, 1'000'000);
}

TEST(Repetition, nothing_repeats_while_the_pipeline_fills) {
  const PipelineKind& kind = pipeline_kind("1f1b");
  const PipelineWork work = runnable_pipeline("1f1b", 8, 1, 40);
  PipelineSimulation simulation(kind, work);
  EXPECT_FALSE(repetition(simulation, under_way("1f1b", work), 1, 1000)) << "not begun";
  simulation.run_before(8);
  EXPECT_FALSE(repetition(simulation, under_way("1f1b", work), 1, 1000));
}

// What is put in must be what a pipeline with as many more micro-batches does, also while stages drift apart.
TEST(Repetition, cycles_put_in_are_those_of_a_longer_pipeline) {
  int drifting = 0;
  for (const PipelineKind& kind : pipeline_kinds()) {
    if (kind.all_forward_first) continue;
    RandomStream stream(1, kind.name);
    for (int round = 0; round < 20; ++round) {
      PipelineWork work = random_pipeline(kind.name, stream, 1, 0.02);
      work.micro_batches += 20 * work.stages;
      if (!why_not(kind.name, work).empty()) continue;
      PipelineSimulation shorter(kind, work);
      const int64_t cycle = kind.cycle(work), at = 12 * work.stages / cycle * cycle;
      shorter.run_before(at);
      const std::optional<Repetition> found =
          repetition(shorter, micro_batches_under_way(shorter.tasks()), cycle, 400 / cycle * cycle);
      if (!found) continue;
      shorter.repeat(*found);
      shorter.run_before(work.micro_batches);

      PipelineWork longer_work = work;
      longer_work.micro_batches += found->cycle * found->times;
      PipelineSimulation longer(kind, longer_work);
      longer.run_before(longer_work.micro_batches);
      for (size_t stage = 0; stage < longer.stages().size(); ++stage) {
        EXPECT_EQ(shorter.turned_back() + shorter.stages()[stage].free_at, longer.stages()[stage].free_at)
            << described(kind.name, work);
        EXPECT_NEAR(shorter.stages()[stage].busy, longer.stages()[stage].busy, 1e-7) << described(kind.name, work);
      }
      if (found->times < 400 / cycle) ++drifting;
    }
  }
  EXPECT_GT(drifting, 5) << "some repetitions must be of stages that drift apart";
}

}  // namespace foretoken::repetition_test
