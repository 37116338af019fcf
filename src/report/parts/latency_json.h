// A latency as `vllm bench serve` names its parts in JSON.
#pragma once

#include <string_view>
#include <vector>

#include "base/json.h"
#include "serving/results/metrics.h"

namespace foretoken {

// mean_ttft_ms, median_..., std_..., p99_... for the name "ttft"; `percentiles` are those of the summary.
void set_latencies(Json& json, std::string_view name, const LatencySummary& summary,
                   const std::vector<double>& percentiles);

// Null in place of each of them: of no requests nothing is known.
void clear_latencies(Json& json, std::string_view name);

}  // namespace foretoken
