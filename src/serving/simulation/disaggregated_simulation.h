// The event loop of a run with separate prefill and decode pools.
#pragma once

#include "serving/simulation/simulation_config.h"

namespace foretoken {

// As simulate(), for a config with `disaggregation`. A request
//   1. goes to a prefill worker, which computes its prompt and one token, and keeps its cache until 4;
//   2. is sent to a decode worker, where it waits, in order, for blocks for its whole prompt;
//   3. has its cache moved there: its prompt's, without full blocks that this worker already has;
//   4. decodes once that has arrived. A preempted one computes its prompt again where it decodes.
// So a full decode pool holds up transfers, and with them the cache of the prefill pool.
SimulationTotals simulate_disaggregated(const SimulationConfig& config, RequestSource& source, RunObserver& observer);

}  // namespace foretoken
