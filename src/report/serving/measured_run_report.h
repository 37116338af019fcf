// A measured run as `vllm bench serve` would have printed it.
#pragma once

#include <string>
#include <vector>

#include "base/json.h"
#include "serving/results/metrics.h"
#include "serving/runs/measured_run.h"

namespace foretoken {

// As a simulated run is summed up: of requests with times, from the first sent to the last token.
ServingMetrics measured_metrics(const MeasuredRun& run, const LatencyGoals& goals,
                                const std::vector<double>& percentiles);

struct MeasuredRunReport {
  const MeasuredRun& run;
  LatencyGoals goals = {};
  std::vector<double> percentiles = {99};
  std::vector<std::string> percentile_metrics = {"ttft", "tpot", "itl"};
};

std::string measured_run_text(const MeasuredRunReport& report);
Json measured_run_json(const MeasuredRunReport& report);

}  // namespace foretoken
