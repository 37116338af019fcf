#include "training/schedule/repetition.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace foretoken {
namespace {

PipelineTask earlier(PipelineTask task, int64_t micro_batches) {
  task.micro_batch -= static_cast<int32_t>(micro_batches);
  return task;
}

// How many tasks a stage has between the last it did and the same of a cycle before; 0 = none found.
size_t tasks_of_cycle(const std::vector<PipelineTask>& tasks, size_t last, int64_t cycle) {
  const PipelineTask wanted = earlier(tasks[last], cycle);
  for (size_t i = last; i-- > 0;) {
    if (tasks[i] == wanted) return last - i;
  }
  return 0;
}

// Looks at one task and its like of the two cycles before.
class TaskTrend {
 public:
  TaskTrend(const PipelineSimulation& simulation, const std::vector<PipelineTask>& tasks, size_t place,
            size_t cycle_tasks)
      : simulation_(simulation), tasks_(tasks), place_(place), cycle_tasks_(cycle_tasks) {}

  // The same task, as much later than the one before as that was.
  bool is_steady(int64_t cycle) const {
    const PipelineTask& task = tasks_[place_];
    const PipelineTask& before = tasks_[place_ - cycle_tasks_];
    const PipelineTask& long_before = tasks_[place_ - 2 * cycle_tasks_];
    if (before != earlier(task, cycle) || long_before != earlier(task, 2 * cycle)) return false;
    return simulation_.end_of(task) - simulation_.end_of(before) ==
           simulation_.end_of(before) - simulation_.end_of(long_before);
  }

  // Cycles until it may wait for something else, at most `most`.
  double certain_cycles(double most) const {
    const PipelineTask& task = tasks_[place_];
    const PipelineTask& before = tasks_[place_ - cycle_tasks_];
    const double start = start_of(place_), start_before = start_of(place_ - cycle_tasks_);
    const auto consider = [&](double known, double known_before) {
      const double slack = start - known, lost = (start_before - known_before) - slack;
      if (lost > 0) most = std::min(most, std::floor(slack / lost));
    };
    const std::array<double, 2> data = simulation_.data_times(task), data_before = simulation_.data_times(before);
    for (size_t i = 0; i < data.size(); ++i) consider(data[i], data_before[i]);
    if (task.pairing != TaskPairing::with_previous) consider(end_before(place_), end_before(place_ - cycle_tasks_));
    return most;
  }

 private:
  // A pair starts together.
  double start_of(size_t place) const {
    const PipelineTask& task = tasks_[place];
    double start = simulation_.start_of(task);
    if (task.pairing == TaskPairing::with_next) start -= simulation_.seconds_of(tasks_[place + 1]);
    if (task.pairing == TaskPairing::with_previous) start -= simulation_.seconds_of(tasks_[place - 1]);
    return start;
  }
  double end_before(size_t place) const { return simulation_.end_of(tasks_[place - 1]); }

  const PipelineSimulation& simulation_;
  const std::vector<PipelineTask>& tasks_;
  size_t place_ = 0, cycle_tasks_ = 0;
};

// A quick look that rules out most cycles.
bool last_tasks_advance_evenly(const PipelineSimulation& simulation, int64_t cycle) {
  for (size_t stage = 0; stage < simulation.stages().size(); ++stage) {
    const PipelineTask& task = simulation.tasks()[stage][simulation.stages()[stage].next - 1];
    const double before = simulation.end_of(earlier(task, cycle));
    if (simulation.end_of(task) - before != before - simulation.end_of(earlier(task, 2 * cycle))) return false;
  }
  return true;
}

std::optional<Repetition> repetition_of(const PipelineSimulation& simulation, int64_t under_way, int64_t cycle,
                                        int64_t first_needed, int64_t most) {
  const int64_t most_times = most / cycle;
  auto times = static_cast<double>(most_times);
  Repetition result{.cycle = cycle, .first_needed = first_needed};
  for (size_t stage = 0; stage < simulation.stages().size(); ++stage) {
    const std::vector<PipelineTask>& tasks = simulation.tasks()[stage];
    const size_t next = simulation.stages()[stage].next;
    const size_t cycle_tasks = tasks_of_cycle(tasks, next - 1, cycle);
    if (cycle_tasks == 0) return std::nullopt;
    result.cycle_tasks.push_back(cycle_tasks);
    // Nothing newer than `under_way` micro-batches comes before a task.
    for (size_t place = next; place-- > 0 && tasks[place].micro_batch >= first_needed - under_way;) {
      if (tasks[place].micro_batch < first_needed) continue;
      if (place < 2 * cycle_tasks + 1) return std::nullopt;
      const TaskTrend trend(simulation, tasks, place, cycle_tasks);
      if (!trend.is_steady(cycle)) return std::nullopt;
      times = trend.certain_cycles(times);
      if (times < 1) return std::nullopt;
    }
  }
  result.times = static_cast<int64_t>(times);
  return result;
}

}  // namespace

int64_t micro_batches_under_way(const StageTasks& tasks) {
  int32_t most = 0;
  std::vector<int32_t> oldest;  // of each task and those behind it
  for (const std::vector<PipelineTask>& list : tasks) {
    oldest.resize(list.size());
    int32_t least = std::numeric_limits<int32_t>::max();
    for (size_t i = list.size(); i-- > 0;) oldest[i] = least = std::min(least, list[i].micro_batch);
    int32_t newest = 0;
    for (size_t i = 0; i < list.size(); ++i) {
      newest = std::max(newest, list[i].micro_batch);
      most = std::max(most, newest - oldest[i] + 1);
    }
  }
  return most;
}

std::optional<Repetition> repetition(const PipelineSimulation& simulation, int64_t under_way, int64_t order_cycle,
                                     int64_t most) {
  int64_t newest = simulation.stages().front().newest;
  for (const PipelineSimulation::Stage& stage : simulation.stages()) newest = std::min(newest, stage.newest);
  if (newest == PipelineSimulation::not_begun) return std::nullopt;
  for (int64_t cycle = order_cycle; cycle <= most; cycle += order_cycle) {
    const int64_t first_needed = newest + 1 - under_way - cycle;
    if (first_needed < 2 * cycle) break;
    if (!last_tasks_advance_evenly(simulation, cycle)) continue;
    std::optional<Repetition> found = repetition_of(simulation, under_way, cycle, first_needed, most);
    if (found) return found;
  }
  return std::nullopt;
}

}  // namespace foretoken
