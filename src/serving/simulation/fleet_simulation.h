// The event loop of a fleet.
#pragma once

#include "serving/simulation/simulation_config.h"

namespace foretoken {

// What `simulate` does where config.fleet is set. Replicas start, serve, drain, stop and fail; those that are missing
// are replaced after a cold start. Requests that no replica of their region can take now are held until one serves. A
// request of a failed replica begins again elsewhere, its latencies counted from its first arrival.
// Served in another region, a request reaches the engine a whole round trip late: the way there and the way back of its
// tokens together, so that all latencies are those that its client sees.
SimulationTotals simulate_fleet(const SimulationConfig& config, RequestSource& source, RunObserver& observer);

}  // namespace foretoken
