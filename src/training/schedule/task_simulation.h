// Runs the ordered tasks of all stages, each as early as its stage is free and its data are there:
//   forward                   after the forward of the chunk before and its message
//   backward, backward_input  after its own forward, and the backward of the chunk behind and its message
//   backward_weight           after its own backward_input
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "training/schedule/pipeline_kind.h"
#include "training/schedule/task_seconds.h"

namespace foretoken {

// When the tasks of one chunk and micro-batch end: forward, backward (or backward_input), backward_weight. One that the
// schedule does not know stays at `not_ended`.
using TaskEnds = std::array<double, 3>;
inline constexpr double not_ended = -1;

struct SimulatedTasks {
  StageTasks tasks;
  TaskSeconds seconds;
  int64_t chunks = 0;
  std::vector<TaskEnds> ends;  // of all chunks of the first micro-batch, of all of the second, ...

  const TaskEnds& ends_of(int64_t chunk, int64_t micro_batch) const {
    return ends[static_cast<size_t>(micro_batch * chunks + chunk)];
  }
  double end_of(const PipelineTask& task) const;
  double start_of(const PipelineTask& task) const { return end_of(task) - seconds.of(task); }
};

SimulatedTasks simulate_tasks(const PipelineKind& kind, const PipelineWork& work);

}  // namespace foretoken
