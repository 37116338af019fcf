// ZB-H1 and ZB-H2 (Qi et al., arXiv 2401.10241, section 3): 1F1B whose weight gradients wait, the longer the later the
// stage, and fill the bubble at the end. ZB-H2 also starts with enough forwards to fill the one at the beginning.
#include <algorithm>

#include "training/schedule/kinds/list.h"

namespace foretoken {
namespace {

// Stage i of p: `lead(p - i)` forwards before the first backward, and weight gradients `lag(i)` micro-batches late.
template <typename Lead, typename Lag>
StageTasks zero_bubble_tasks(const PipelineWork& work, Lead lead, Lag lag) {
  StageTasks tasks(static_cast<size_t>(work.stages));
  for (int64_t stage = 0; stage < work.stages; ++stage) {
    std::vector<PipelineTask>& list = tasks[static_cast<size_t>(stage)];
    const int64_t first_forwards = lead(work.stages - stage), late = lag(stage);
    int64_t forwards = 0, weights = 0;
    for (int64_t i = 0; i < work.micro_batches; ++i) {
      while (forwards < std::min(i + first_forwards, work.micro_batches)) {
        list.push_back(pipeline_task(PipelineTaskKind::forward, stage, forwards++));
      }
      list.push_back(pipeline_task(PipelineTaskKind::backward_input, stage, i));
      if (i >= late) list.push_back(pipeline_task(PipelineTaskKind::backward_weight, stage, weights++));
    }
    while (weights < work.micro_batches) {
      list.push_back(pipeline_task(PipelineTaskKind::backward_weight, stage, weights++));
    }
  }
  return tasks;
}

StageTasks zero_bubble_h1_tasks(const PipelineWork& work) {
  return zero_bubble_tasks(
      work, [](int64_t stages_left) { return stages_left; }, [](int64_t stage) { return stage; });
}

StageTasks zero_bubble_h2_tasks(const PipelineWork& work) {
  return zero_bubble_tasks(
      work, [](int64_t stages_left) { return 2 * stages_left - 1; }, [](int64_t stage) { return 2 * stage; });
}

}  // namespace

PipelineKind zero_bubble_h1_schedule() {
  return {.name = "zb-h1",
          .summary = "ZB-H1: weight gradients fill a third of 1F1B's bubble or more; its memory",
          .why_not = [](const PipelineWork& work) { return why_not_virtual_stages(work, 1); },
          .tasks = zero_bubble_h1_tasks,
          .stage_of = round_robin_stage,
          .cycle = every_micro_batch};
}

PipelineKind zero_bubble_h2_schedule() {
  return {.name = "zb-h2",
          .summary = "ZB-H2: nearly no bubble; twice the memory, and no barrier before the optimizer",
          .why_not = [](const PipelineWork& work) { return why_not_virtual_stages(work, 1); },
          .tasks = zero_bubble_h2_tasks,
          .stage_of = round_robin_stage,
          .cycle = every_micro_batch,
          .stages_end_apart = true};
}

}  // namespace foretoken
