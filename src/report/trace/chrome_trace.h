// A predicted step as a Chrome trace (JSON object format, "X" events), which Perfetto and chrome://tracing open.
// One process for each pipeline stage, one track for the host and one for the device.
#pragma once

#include <cstdint>
#include <string>

#include "base/json.h"
#include "compose/stack.h"
#include "compose/step_estimate.h"

namespace foretoken {

// `stack` and `host_factor` are those that the estimate was made with. Times are microseconds; stages follow each
// other.
Json chrome_trace(const StepEstimate& step, const Stack& stack, double host_factor = 1);

// The same as part of a larger trace: the step begins at `begin_us`, and its stages are processes from `process` on
// whose names begin with `label`.
void add_step_events(Json& events, const StepEstimate& step, const Stack& stack, double host_factor, int64_t process,
                     const std::string& label, double begin_us);

}  // namespace foretoken
