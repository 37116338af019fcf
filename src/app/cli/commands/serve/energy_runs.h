// Runs of `serve` that tell what it draws: at each clock of --gpu-clock auto, and for its page.
#pragma once

#include <vector>

#include "app/cli/commands/serve/serve_flags.h"
#include "report/page/serving_page.h"

namespace foretoken {

// Of metered replicas. InputError where no latency says which clock is too slow.
std::vector<ClockTrial> try_clocks(const ServeFlags& flags, ReplicaFlags replica, const Library& library);

// The energy that a page shows although --energy was not asked for. Boards that are held busy have slower steps, so
// that it is of a run of its own.
void add_page_energy(ServingPage& page, const ServeFlags& flags, ReplicaFlags replica,
                     const std::vector<ReplicaGroup>& groups, const Library& library);

}  // namespace foretoken
