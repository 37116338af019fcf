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

// (p - 1)(F + B - W) as long as W is the shortest: it is what moves into the bubble.
std::optional<double> zero_bubble_h1_bubble(const PipelineWork& work, const ChunkTimes& times) {
  if (work.micro_batches < work.stages) return std::nullopt;
  const double filled = std::min({times.forward, times.backward_input, times.backward_weight});
  return static_cast<double>(work.stages - 1) * (times.forward + times.backward_input - filled);
}

// (p - 1)(F + B - 2W), and no less than what a backward longer than the forward keeps the last stage waiting.
std::optional<double> zero_bubble_h2_bubble(const PipelineWork& work, const ChunkTimes& times) {
  if (work.micro_batches < 2 * work.stages - 1) return std::nullopt;
  const double unfilled = times.forward + times.backward_input - 2 * times.backward_weight;
  return static_cast<double>(work.stages - 1) * std::max({0.0, unfilled, times.backward_input - times.forward});
}

}  // namespace

PipelineKind zero_bubble_h1_schedule() {
  return {.name = "zb-h1",
          .summary = "ZB-H1: weight gradients fill up to two thirds of the 1F1B bubble; same memory as 1F1B",
          .why_not = [](const PipelineWork& work) { return why_not_virtual_stages(work, 1); },
          .tasks = zero_bubble_h1_tasks,
          .stage_of = round_robin_stage,
          .cycle = every_micro_batch,
          .even_bubble = zero_bubble_h1_bubble,
          .splits_backward = true};
}

PipelineKind zero_bubble_h2_schedule() {
  return {.name = "zb-h2",
          .summary = "ZB-H2: almost no bubble; twice the memory, and no barrier before the optimizer",
          .why_not = [](const PipelineWork& work) { return why_not_virtual_stages(work, 1); },
          .tasks = zero_bubble_h2_tasks,
          .stage_of = round_robin_stage,
          .cycle = every_micro_batch,
          .even_bubble = zero_bubble_h2_bubble,
          .splits_backward = true,
          .stages_end_apart = true};
}

}  // namespace foretoken
