// A predicted step as a Chrome trace (JSON object format, "X" events), which Perfetto and chrome://tracing open.
// One process for each pipeline stage, one track for the host and one for the device.
#pragma once

#include "base/json.h"
#include "compose/stack.h"
#include "compose/step_estimate.h"

namespace foretoken {

// `stack` and `host_factor` are those that the estimate was made with. Times are microseconds; stages follow each
// other.
Json chrome_trace(const StepEstimate& step, const Stack& stack, double host_factor = 1);

}  // namespace foretoken
