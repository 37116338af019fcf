// 1F1B with flush (PipeDream-Flush; Narayanan et al., arXiv 2104.04473, section 2.2.1): stage i of p starts with p - i
// forwards, then each backward makes room for one forward.
#include <algorithm>

#include "training/schedule/kinds/list.h"

namespace foretoken {
namespace {

StageTasks one_forward_one_backward_tasks(const PipelineWork& work) {
  StageTasks tasks(static_cast<size_t>(work.stages));
  for (int64_t stage = 0; stage < work.stages; ++stage) {
    std::vector<PipelineTask>& list = tasks[static_cast<size_t>(stage)];
    int64_t forwards = 0;
    for (int64_t i = 0; i < work.micro_batches; ++i) {
      while (forwards < std::min(i + work.stages - stage, work.micro_batches)) {
        list.push_back(pipeline_task(PipelineTaskKind::forward, stage, forwards++));
      }
      list.push_back(pipeline_task(PipelineTaskKind::backward, stage, i));
    }
  }
  return tasks;
}

}  // namespace

PipelineKind one_forward_one_backward_schedule() {
  return {.name = "1f1b",
          .summary = "one forward, one backward: at most as many micro-batches in flight as there are stages",
          .why_not = [](const PipelineWork& work) { return why_not_virtual_stages(work, 1); },
          .tasks = one_forward_one_backward_tasks,
          .stage_of = round_robin_stage,
          .cycle = every_micro_batch,
          .even_bubble = ramp_bubble};
}

}  // namespace foretoken
