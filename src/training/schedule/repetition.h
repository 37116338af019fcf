// Where a simulated pipeline does the same again and again, and for how long it will.
#pragma once

#include <cstdint>
#include <optional>

#include "training/schedule/pipeline_simulation.h"

namespace foretoken {

// Micro-batches between the oldest and the newest that a stage works on, at most over all stages and times.
int64_t micro_batches_under_way(const StageTasks& tasks);

// A task starts when the last of those it waits for has ended. Let every task under way end as much after its like of
// the cycle before as that one did. As long as each still waits for the same one, the next cycle advances all of them
// in the same way: by different times, perhaps, so that some task comes nearer to one that it does not wait for yet.
// How near, and by how much in each cycle, says how many cycles are certain.
//   order_cycle  micro-batches after which the order of tasks repeats; multiples of it are tried
//   most         micro-batches that may be put in
std::optional<Repetition> repetition(const PipelineSimulation& simulation, int64_t under_way, int64_t order_cycle,
                                     int64_t most);

}  // namespace foretoken
