// Interleaved 1F1B (Narayanan et al., arXiv 2104.04473, section 2.2.2): stage i holds chunks i, i + p, i + 2p, ... The
// order is Megatron-LM's (core/pipeline_parallel/schedules.py): groups of micro-batches pass one chunk after the other;
// (p - i - 1) * 2 + (v - 1) * group forwards before the first backward but one.
#include <algorithm>

#include <fmt/format.h>

#include "training/schedule/kinds/list.h"

namespace foretoken {
namespace {

int64_t group_size(const PipelineWork& work) {
  return work.micro_batch_group > 0 ? work.micro_batch_group : work.stages;
}

// Megatron-LM's own conditions. A smaller last group would wait for itself: a chunk's first micro-batch comes back to a
// stage only after p tasks.
std::string why_not_interleaved(const PipelineWork& work) {
  if (work.stages < 2) return "interleaving needs at least 2 pipeline stages";
  if (work.virtual_stages < 2) return "interleaving needs at least 2 virtual stages on each rank";
  const int64_t group = group_size(work), last = work.micro_batches % group;
  if (group < work.stages || group > work.micro_batches) {
    return fmt::format("groups of {} micro-batches: expected at least the number of stages ({}) and at most all {}",
                       group, work.stages, work.micro_batches);
  }
  if (last > 0 && last < work.stages) {
    return fmt::format("{} micro-batches leave a last group of {}: expected a multiple of {}, or at least {} left over",
                       work.micro_batches, last, group, work.stages);
  }
  return {};
}

StageTasks interleaved_tasks(const PipelineWork& work) {
  const int64_t group = group_size(work), all = work.micro_batches * work.virtual_stages;
  // Virtual stage and micro-batch of the tasks of one direction, the same for all stages.
  std::vector<PipelineTask> order;
  order.reserve(static_cast<size_t>(all));
  for (int64_t first = 0; first < work.micro_batches; first += group) {
    const int64_t end = std::min(first + group, work.micro_batches);
    for (int64_t part = 0; part < work.virtual_stages; ++part) {
      for (int64_t i = first; i < end; ++i) order.push_back(pipeline_task(PipelineTaskKind::forward, part, i));
    }
  }
  StageTasks tasks(static_cast<size_t>(work.stages));
  for (int64_t stage = 0; stage < work.stages; ++stage) {
    std::vector<PipelineTask>& list = tasks[static_cast<size_t>(stage)];
    list.reserve(static_cast<size_t>(2 * all));
    const int64_t warm_up = (work.stages - stage - 1) * 2 + (work.virtual_stages - 1) * group;
    int64_t forwards = 0;
    for (int64_t i = 0; i < all; ++i) {
      for (; forwards < std::min(i + warm_up + 1, all); ++forwards) {
        const PipelineTask& next = order[static_cast<size_t>(forwards)];
        list.push_back(pipeline_task(PipelineTaskKind::forward, next.chunk * work.stages + stage, next.micro_batch));
      }
      const PipelineTask& next = order[static_cast<size_t>(i)];
      const int64_t part = work.virtual_stages - 1 - next.chunk;
      list.push_back(pipeline_task(PipelineTaskKind::backward, part * work.stages + stage, next.micro_batch));
    }
  }
  return tasks;
}

}  // namespace

PipelineKind interleaved_schedule() {
  return {.name = "interleaved",
          .summary = "interleaved 1F1B: several chunks of layers per rank; a shorter bubble, more messages",
          .why_not = why_not_interleaved,
          .tasks = interleaved_tasks,
          .stage_of = round_robin_stage,
          .cycle = group_size,
          .even_bubble = ramp_bubble};
}

}  // namespace foretoken
