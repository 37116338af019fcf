// The replicas of a run.
#pragma once

#include <deque>

#include "serving/simulation/replica.h"

namespace foretoken {

std::deque<Replica> make_replicas(const SimulationConfig& config, RunObserver& observer, KvTiers* tiers = nullptr);

// What they did together, when nothing is left to do.
SimulationTotals totals_of(const std::deque<Replica>& replicas);

}  // namespace foretoken
