// Whether requests came faster than the engines serve them.
#pragma once

#include <string>
#include <string_view>

#include "serving/results/arrival_span.h"
#include "serving/serving_run.h"

namespace foretoken {

// A sentence on a run whose queue grew as long as requests arrived: its latencies tell how long the run was, not how
// fast the engines are. `load`: what they were asked to keep up with, as in "5 requests/s". Empty where they kept up,
// also where a burst made requests wait for a while.
std::string overload_note(const ServingRun& run, const ArrivalSpan& arrivals, std::string_view load);

}  // namespace foretoken
