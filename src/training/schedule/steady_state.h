// Where a simulated pipeline repeats itself.
#pragma once

#include <cstdint>
#include <optional>

#include "training/schedule/task_simulation.h"

namespace foretoken {

// Micro-batches between the oldest and the newest that a stage still works on, at most over all stages and times.
int64_t micro_batches_under_way(const StageTasks& tasks);

// All tasks of micro-batch i + `micro_batches` end `seconds` after those of micro-batch i.
struct SteadyState {
  int64_t micro_batches = 0;
  double seconds = 0;
};

// A task depends on those of micro-batches under way with it, and the order of tasks repeats. So when everything under
// way around a micro-batch is later by one and the same time than some micro-batches before, it goes on like this until
// the last forward. Looks at the micro-batches before that; `cycle` is after how many the order repeats.
std::optional<SteadyState> steady_state(const SimulatedTasks& run, int64_t micro_batches, int64_t cycle);

}  // namespace foretoken
