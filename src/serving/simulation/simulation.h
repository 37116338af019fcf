// A serving run: requests come in, replicas of an engine serve them, an observer is told what happens.
#pragma once

#include "serving/requests/request.h"
#include "serving/simulation/simulation_config.h"

namespace foretoken {

// Runs until the source has no more requests and all are served. Deterministic; one thread.
// Rejected, and told to the observer at their arrival: requests without output or input tokens, with a prompt of
// max_model_len or more, and those whose tokens can never fit in the KV cache. Output beyond max_model_len is cut.
// InputError when arrivals go back in time, or when the config or the observer asks for parts that cannot be combined
// (run_parts.h).
SimulationTotals simulate(const SimulationConfig& config, RequestSource& source, RunObserver& observer);

}  // namespace foretoken
