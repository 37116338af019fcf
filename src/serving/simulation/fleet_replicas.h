// Replicas that come and go.
#pragma once

#include <memory>

#include "serving/simulation/site.h"

namespace foretoken {

// Of a config with `fleet`, which outlives it as the others do. Replicas start, serve, drain, stop and fail; those that
// are missing are replaced after a cold start. Requests that no replica of their region can take now are held until one
// serves. A request of a failed replica begins again elsewhere, its latencies counted from its first arrival. Served in
// another region, a request reaches the engine a whole round trip late: the way there and the way back of its tokens
// together, so that all latencies are those that its client sees.
std::unique_ptr<Site> make_fleet_replicas(const SimulationConfig& config, RequestEnds& ends, RunObserver& observer);

}  // namespace foretoken
