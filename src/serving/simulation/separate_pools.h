// Separate prefill and decode pools.
#pragma once

#include <memory>

#include "serving/simulation/site.h"

namespace foretoken {

// Of a config with `disaggregation`, which outlives it as the others do. A request
//   1. goes to a prefill worker, which computes its prompt and one token, and keeps its cache until 4;
//   2. is sent to a decode worker, where it waits, in order, for blocks for its whole prompt (TensorRT-LLM:
//      and for a place in the batch);
//   3. has its cache moved there: its prompt's, without full blocks that this worker already has;
//   4. decodes once that has arrived. A preempted one computes its prompt again where it decodes.
// So a full decode pool holds up transfers, and with them the cache of the prefill pool.
std::unique_ptr<Site> make_separate_pools(const SimulationConfig& config, RequestEnds& ends, RunObserver& observer);

}  // namespace foretoken
