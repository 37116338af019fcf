#include "training/schedule/steady_state.h"

#include <algorithm>

namespace foretoken {
namespace {

// Whether all ends of micro-batches [first, end) are `later` after those `distance` micro-batches before.
bool all_shifted(const SimulatedTasks& run, int64_t first, int64_t end, int64_t distance, double later) {
  const auto from = static_cast<size_t>(first * run.chunks), to = static_cast<size_t>(end * run.chunks);
  const auto back = static_cast<size_t>(distance * run.chunks);
  for (size_t i = from; i < to; ++i) {
    for (size_t slot = 0; slot < run.ends[i].size(); ++slot) {
      const double now = run.ends[i][slot];
      if (now != not_ended && now - run.ends[i - back][slot] != later) return false;
    }
  }
  return true;
}

}  // namespace

int64_t micro_batches_under_way(const StageTasks& tasks) {
  int32_t most = 0;
  for (const std::vector<PipelineTask>& list : tasks) {
    std::vector<int32_t> newest;  // up to each task
    for (const PipelineTask& task : list) {
      newest.push_back(newest.empty() ? task.micro_batch : std::max(newest.back(), task.micro_batch));
    }
    int32_t oldest = newest.empty() ? 0 : newest.back();  // from each task on
    for (size_t i = list.size(); i-- > 0;) {
      oldest = std::min(oldest, list[i].micro_batch);
      most = std::max(most, newest[i] - oldest + 1);
    }
  }
  return most;
}

std::optional<SteadyState> steady_state(const SimulatedTasks& run, int64_t micro_batches, int64_t cycle) {
  const int64_t under_way = micro_batches_under_way(run.tasks);
  const int64_t end = micro_batches - under_way, first = end - 2 * under_way;
  for (int64_t distance = cycle; distance <= first; distance += cycle) {
    // Two periods at least, so that a chance match of few micro-batches does not count.
    const int64_t from = std::min(first, end - distance);
    if (from < distance) break;
    const double later = run.ends_of(0, end - 1)[0] - run.ends_of(0, end - 1 - distance)[0];
    if (all_shifted(run, from, end, distance, later)) return SteadyState{.micro_batches = distance, .seconds = later};
  }
  return std::nullopt;
}

}  // namespace foretoken
