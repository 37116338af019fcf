// All forwards, then all backwards (Huang et al., arXiv 1811.06965): every micro-batch is in flight at once.
#include "training/schedule/kinds/list.h"

namespace foretoken {
namespace {

StageTasks gpipe_tasks(const PipelineWork& work) {
  StageTasks tasks(static_cast<size_t>(work.stages));
  for (int64_t stage = 0; stage < work.stages; ++stage) {
    std::vector<PipelineTask>& list = tasks[static_cast<size_t>(stage)];
    for (const PipelineTaskKind kind : {PipelineTaskKind::forward, PipelineTaskKind::backward}) {
      for (int64_t i = 0; i < work.micro_batches; ++i) list.push_back(pipeline_task(kind, stage, i));
    }
  }
  return tasks;
}

}  // namespace

PipelineKind gpipe_schedule() {
  return {.name = "gpipe",
          .summary = "GPipe: all forward passes, then all backward passes; every micro-batch in flight",
          .why_not = [](const PipelineWork& work) { return why_not_virtual_stages(work, 1); },
          .tasks = gpipe_tasks,
          .stage_of = round_robin_stage,
          .cycle = every_micro_batch,
          .even_bubble = ramp_bubble,
          .all_forward_first = true};
}

}  // namespace foretoken
