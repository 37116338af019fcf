// A serving run as `vllm bench serve` prints and saves it, with what a simulation knows on top.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "serving/serving_run.h"

namespace foretoken {

struct ServingReport {
  std::string model, device, scheduler;
  int64_t num_prompts = 0;
  double request_rate = 0;  // infinite = all at once
  double burstiness = 1;
  std::optional<int64_t> max_concurrency;
  std::vector<double> percentiles = {99};                                 // those of the run's summaries
  std::vector<std::string> percentile_metrics = {"ttft", "tpot", "itl"};  // shown in the table; also e2el
  int64_t replicas = 1, devices = 1;
  int64_t kv_blocks = 0, block_size = 0;  // of one replica
  const ServingRun& run;
};

// vLLM's table, label by label, then our own lines.
std::string serving_text(const ServingReport& report);

// The keys of `vllm bench serve --save-result`; `date` is left empty, a simulation has none.
Json vllm_result_json(const ServingReport& report);

// The same keys and ours: intervals, preemptions, cache hits, time series.
Json serving_json(const ServingReport& report);

// Latency metrics that --percentile-metrics knows.
std::vector<std::string> latency_metric_names();

}  // namespace foretoken
