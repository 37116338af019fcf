// An estimated step as Chakra execution traces, one for each rank: for other simulators, and for foretoken replay.
#pragma once

#include <cstdint>

#include "compose/stack.h"
#include "compose/step_estimate.h"
#include "network/chakra/chakra.h"

namespace foretoken {

// Ranks of all replicas are numbered in the step's rank order.

// Kernels in the order of the device, each behind the one before it; the gaps between them as nodes of the host;
// collectives with their process groups; messages between stages. A replay in which collectives take their estimated
// time ends after step.seconds. `stack` and `host_factor` are those of the estimate.
ChakraTrace step_chakra(const StepEstimate& step, const Stack& stack, double host_factor, int64_t rank);

}  // namespace foretoken
