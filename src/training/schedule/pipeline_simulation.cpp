#include "training/schedule/pipeline_simulation.h"

#include <algorithm>
#include <limits>

#include "base/error.h"

namespace foretoken {

PipelineSimulation::PipelineSimulation(const PipelineKind& kind, const PipelineWork& work)
    : micro_batches_(work.micro_batches),
      model_copies_(kind.model_copies),
      tasks_(kind.tasks(work)),
      seconds_(work),
      chunks_(static_cast<int64_t>(work.chunks.size())),
      ends_(work.chunks.size() * static_cast<size_t>(work.micro_batches), {not_ended, not_ended, not_ended}),
      stages_(static_cast<size_t>(work.stages)),
      is_awake_(static_cast<size_t>(work.stages)) {
  for (int64_t copy = 0; copy < model_copies_; ++copy) {
    for (int64_t chunk = 0; chunk < chunks_; ++chunk) {
      stage_of_.push_back(static_cast<int32_t>(kind.stage_of(work, chunk, copy)));
    }
  }
}

void PipelineSimulation::run_before(int64_t micro_batch) {
  for (size_t stage = 0; stage < stages_.size(); ++stage) wake(stage);
  while (!awake_.empty()) {
    const size_t stage = awake_.back();
    awake_.pop_back();
    is_awake_[stage] = false;
    advance(stage, micro_batch);
  }
  if (micro_batch < micro_batches_) return;
  for (size_t stage = 0; stage < stages_.size(); ++stage) {
    ensure(stages_[stage].next == tasks_[stage].size(), "no two stages of a pipeline wait for each other");
  }
}

void PipelineSimulation::wake(size_t stage) {
  if (is_awake_[stage]) return;
  is_awake_[stage] = true;
  awake_.push_back(stage);
}

void PipelineSimulation::advance(size_t index, int64_t before) {
  Stage& stage = stages_[index];
  const std::vector<PipelineTask>& tasks = tasks_[index];
  for (; stage.next < tasks.size(); ++stage.next) {
    const PipelineTask& task = tasks[stage.next];
    const bool paired = task.pairing == TaskPairing::with_next;
    const PipelineTask& last = tasks[stage.next + (paired ? 1 : 0)];
    const auto newest = std::max<int64_t>({stage.newest, task.micro_batch, last.micro_batch});
    double start = stage.free_at;
    if (newest >= before || !is_ready(task, start) || (paired && !is_ready(last, start))) return;
    stage.newest = newest;
    if (stage.next == 0) stage.first_start = start;
    const double seconds = seconds_.of(task) + (paired ? seconds_.of(last) : 0);
    stage.free_at = start + seconds;
    stage.busy += seconds;
    finish(task, stage.free_at);
    if (paired) {
      finish(last, stage.free_at);
      ++stage.next;
    }
  }
}

// Whether its data are known; then `start` is no earlier than they are there.
bool PipelineSimulation::is_ready(const PipelineTask& task, double& start) const {
  const std::array<double, 2> times = data_times(task);
  if (times[0] == not_ended || times[1] == not_ended) return false;
  start = std::max({start, times[0], times[1]});
  return true;
}

void PipelineSimulation::finish(const PipelineTask& task, double end) {
  ends_[place(task.chunk, task.micro_batch)][end_slot(task.kind)] = end;
  if (task.kind == PipelineTaskKind::backward_weight) return;
  const int64_t waiting = task.kind == PipelineTaskKind::forward ? task.chunk + 1 : task.chunk - 1;
  if (waiting >= 0 && waiting < chunks_) wake(static_cast<size_t>(stage_of(waiting, task.micro_batch)));
}

std::array<double, 2> PipelineSimulation::data_times(const PipelineTask& task) const {
  const TaskEnds& own = ends_[place(task.chunk, task.micro_batch)];
  switch (task.kind) {
    case PipelineTaskKind::forward:
      return {0, task.chunk == 0 ? 0 : received_at(task, task.chunk - 1, seconds_.send_forward())};
    case PipelineTaskKind::backward:
    case PipelineTaskKind::backward_input:
      return {own[0], task.chunk + 1 == chunks_ ? 0 : received_at(task, task.chunk + 1, seconds_.send_backward())};
    case PipelineTaskKind::backward_weight:
      break;
  }
  return {own[1], 0};
}

double PipelineSimulation::received_at(const PipelineTask& task, int64_t from_chunk, double send_seconds) const {
  const double end = ends_[place(from_chunk, task.micro_batch)][end_slot(task.kind)];
  const bool stays =
      end == not_ended || stage_of(from_chunk, task.micro_batch) == stage_of(task.chunk, task.micro_batch);
  return stays ? end : end + send_seconds;
}

void PipelineSimulation::repeat(const Repetition& repetition) {
  const auto back = static_cast<size_t>(repetition.cycle * chunks_);
  const auto times = static_cast<double>(repetition.times);
  const auto each_ended = [&](auto visit) {
    // Backwards: how far a task advanced is known from the one before as it was.
    for (size_t i = ends_.size(); i-- > place(0, repetition.first_needed);) {
      for (size_t slot = 0; slot < ends_[i].size(); ++slot) {
        if (ends_[i][slot] != not_ended) visit(ends_[i][slot], ends_[i][slot] - ends_[i - back][slot]);
      }
    }
  };
  double least_advance = std::numeric_limits<double>::infinity();
  each_ended([&](double /*end*/, double advance) { least_advance = std::min(least_advance, advance); });
  each_ended([&](double& end, double advance) { end += times * (advance - least_advance); });
  turned_back_ += times * least_advance;
  for (size_t i = 0; i < stages_.size(); ++i) {
    Stage& stage = stages_[i];
    stage.free_at = end_of(tasks_[i][stage.next - 1]);
    for (size_t task = stage.next - repetition.cycle_tasks[i]; task < stage.next; ++task) {
      stage.busy += times * seconds_.of(tasks_[i][task]);
    }
  }
}

}  // namespace foretoken
