#include "training/schedule/task_simulation.h"

#include <algorithm>

#include "base/error.h"

namespace foretoken {
namespace {

constexpr size_t end_slot(PipelineTaskKind kind) {
  switch (kind) {
    case PipelineTaskKind::forward:
      return 0;
    case PipelineTaskKind::backward:
    case PipelineTaskKind::backward_input:
      return 1;
    case PipelineTaskKind::backward_weight:
      break;
  }
  return 2;
}

class TaskSimulation {
 public:
  TaskSimulation(const PipelineKind& kind, const PipelineWork& work)
      : kind_(kind),
        work_(work),
        stages_(static_cast<size_t>(work.stages)),
        result_{.tasks = kind.tasks(work),
                .seconds = TaskSeconds(work),
                .chunks = static_cast<int64_t>(work.chunks.size()),
                .ends = std::vector<TaskEnds>(work.chunks.size() * static_cast<size_t>(work.micro_batches),
                                              {not_ended, not_ended, not_ended})} {}

  SimulatedTasks run() && {
    for (size_t stage = 0; stage < stages_.size(); ++stage) wake(stage);
    while (!awake_.empty()) {
      const size_t stage = awake_.back();
      awake_.pop_back();
      stages_[stage].awake = false;
      advance(stage);
    }
    for (size_t stage = 0; stage < stages_.size(); ++stage) {
      ensure(stages_[stage].next == result_.tasks[stage].size(), "no two stages of a pipeline wait for each other");
    }
    return std::move(result_);
  }

 private:
  struct Stage {
    size_t next = 0;  // of its tasks
    double free_at = 0;
    bool awake = false;
  };

  TaskEnds& ends(int64_t chunk, int64_t micro_batch) {
    return result_.ends[static_cast<size_t>(micro_batch * result_.chunks + chunk)];
  }

  void wake(size_t stage) {
    if (stages_[stage].awake) return;
    stages_[stage].awake = true;
    awake_.push_back(stage);
  }

  // Runs tasks of the stage until one lacks its data.
  void advance(size_t index) {
    Stage& stage = stages_[index];
    const std::vector<PipelineTask>& list = result_.tasks[index];
    for (; stage.next < list.size(); ++stage.next) {
      const PipelineTask& task = list[stage.next];
      double ready = ready_at(static_cast<int64_t>(index), task);
      if (ready < 0) return;
      double seconds = result_.seconds.of(task);
      if (task.pairing == TaskPairing::with_next) {
        const double partner_ready = ready_at(static_cast<int64_t>(index), list[stage.next + 1]);
        if (partner_ready < 0) return;
        ready = std::max(ready, partner_ready);
        seconds += result_.seconds.of(list[stage.next + 1]);
      }
      stage.free_at = std::max(stage.free_at, ready) + seconds;
      finish(task, stage.free_at);
      if (task.pairing == TaskPairing::with_next) finish(list[++stage.next], stage.free_at);
    }
  }

  void finish(const PipelineTask& task, double end) {
    ends(task.chunk, task.micro_batch)[end_slot(task.kind)] = end;
    const int64_t waiting = waiting_chunk(task);
    if (waiting >= 0) wake(static_cast<size_t>(kind_.stage_of(work_, waiting, task.micro_batch)));
  }

  // The chunk that waits for the task; negative = none.
  int64_t waiting_chunk(const PipelineTask& task) const {
    if (task.kind == PipelineTaskKind::backward_weight) return -1;
    if (task.kind != PipelineTaskKind::forward) return task.chunk - 1;
    return task.chunk + 1 < result_.chunks ? task.chunk + 1 : -1;
  }

  // When the data of a task are there; negative = not yet known.
  double ready_at(int64_t stage, const PipelineTask& task) {
    const TaskEnds& own = ends(task.chunk, task.micro_batch);
    switch (task.kind) {
      case PipelineTaskKind::forward:
        return task.chunk == 0 ? 0 : received_at(stage, task.chunk - 1, task, result_.seconds.send_forward());
      case PipelineTaskKind::backward:
      case PipelineTaskKind::backward_input: {
        if (own[0] < 0 || task.chunk + 1 == result_.chunks) return own[0];
        const double received = received_at(stage, task.chunk + 1, task, result_.seconds.send_backward());
        return received < 0 ? received : std::max(own[0], received);
      }
      case PipelineTaskKind::backward_weight:
        break;
    }
    return own[1];
  }

  // When the stage has what `chunk` computed in the same direction.
  double received_at(int64_t stage, int64_t chunk, const PipelineTask& task, double send_seconds) {
    const double end = ends(chunk, task.micro_batch)[end_slot(task.kind)];
    const bool here = end < 0 || kind_.stage_of(work_, chunk, task.micro_batch) == stage;
    return here ? end : end + send_seconds;
  }

  const PipelineKind& kind_;
  const PipelineWork& work_;
  std::vector<Stage> stages_;
  std::vector<size_t> awake_;
  SimulatedTasks result_;
};

}  // namespace

double SimulatedTasks::end_of(const PipelineTask& task) const {
  return ends_of(task.chunk, task.micro_batch)[end_slot(task.kind)];
}

SimulatedTasks simulate_tasks(const PipelineKind& kind, const PipelineWork& work) {
  return TaskSimulation(kind, work).run();
}

}  // namespace foretoken
