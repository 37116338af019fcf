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

// All stages do the same in every `cycle` micro-batches, and every task advances by as much as in the cycle before.
struct Repetition {
  int64_t cycle = 0;                // micro-batches
  int64_t times = 0;                // that it goes on for at least
  int64_t first_needed = 0;         // the oldest micro-batch that tasks to come may depend on
  std::vector<size_t> cycle_tasks;  // of each stage
};

class PipelineSimulation {
 public:
  struct Stage {
    size_t next = 0;             // of its tasks; those before have been run
    int64_t newest = not_begun;  // micro-batch of them
    double first_start = 0, free_at = 0, busy = 0;
  };
  static constexpr int64_t not_begun = -1;
  static constexpr double not_ended = -1;

  PipelineSimulation(const PipelineKind& kind, const PipelineWork& work);

  // Runs what each stage does before its first task of that micro-batch, as far as it does not wait for what comes
  // after; everything for micro_batch = micro_batches.
  void run_before(int64_t micro_batch);

  const StageTasks& tasks() const { return tasks_; }
  const std::vector<Stage>& stages() const { return stages_; }
  int64_t chunks() const { return chunks_; }
  double seconds_of(const PipelineTask& task) const { return seconds_.of(task); }
  // Less what the clock was turned back by.
  double end_of(const PipelineTask& task) const {
    return ends_[place(task.chunk, task.micro_batch)][end_slot(task.kind)];
  }
  double start_of(const PipelineTask& task) const { return end_of(task) - seconds_.of(task); }
  // When it has its own earlier task's result and what another chunk computes for it; 0 where it needs none.
  std::array<double, 2> data_times(const PipelineTask& task) const;

  // Puts in so many cycles (repetition.h finds them) as if they had been run. Then the clock is turned back, which
  // keeps its numbers small and their sums exact.
  void repeat(const Repetition& repetition);
  double turned_back() const { return turned_back_; }

 private:
  // Ends of forward, backward (or backward_input) and backward_weight.
  using TaskEnds = std::array<double, 3>;

  static constexpr size_t end_slot(PipelineTaskKind kind) {
    if (kind == PipelineTaskKind::forward) return 0;
    return kind == PipelineTaskKind::backward_weight ? 2 : 1;
  }
  size_t place(int64_t chunk, int64_t micro_batch) const { return static_cast<size_t>(micro_batch * chunks_ + chunk); }
  void wake(size_t stage);
  void advance(size_t index, int64_t before);  // the stage of that index
  bool is_ready(const PipelineTask& task, double& start) const;
  void finish(const PipelineTask& task, double end);
  double received_at(const PipelineTask& task, int64_t from_chunk, double send_seconds) const;

  int32_t stage_of(int64_t chunk, int64_t micro_batch) const {
    return stage_of_[static_cast<size_t>(micro_batch % model_copies_ * chunks_ + chunk)];
  }

  int64_t micro_batches_ = 0, model_copies_ = 1;
  std::vector<int32_t> stage_of_;  // of all chunks of the first copy of the model, of all of the second
  StageTasks tasks_;
  TaskSeconds seconds_;
  int64_t chunks_ = 0;
  std::vector<TaskEnds> ends_;  // of all chunks of the first micro-batch, of all of the second, ...
  std::vector<Stage> stages_;
  std::vector<size_t> awake_;  // stages that may have something to do
  std::vector<bool> is_awake_;
  double turned_back_ = 0;
};

}  // namespace foretoken
