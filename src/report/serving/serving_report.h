// A serving run as `vllm bench serve` prints and saves it, with what a simulation knows on top.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json.h"
#include "compose/step_sources.h"
#include "report/parts/device_notes.h"
#include "serving/results/priority_metrics.h"
#include "serving/results/request_details.h"
#include "serving/serving_run.h"
#include "serving/speculation/block_diffusion.h"

namespace foretoken {

// Equal replicas.
struct ReplicaSummary {
  std::string device, scheduler;
  std::string release;         // of the engine, as in vllm-0.12; empty = none was asked for
  std::string model;           // where it is not the report's
  std::string pool;            // "prefill" or "decode"; empty = it does both
  bool shares_device = false;  // with the group before it
  int64_t count = 1;
  int64_t devices_each = 1;
  int64_t kv_blocks = 0, block_size = 0;  // of one replica
  std::vector<LinkTraffic> links = {};    // what each device sends for a token of a decode step; bytes alone
  std::optional<StepSources> sources;     // what a typical step rests on
  // Of a prefill pool: what each device sends of a prompt's token to the decode pool.
  std::optional<LinkTraffic> kv_transfer = {};
};

struct ServingReport {
  std::string model;
  std::vector<ReplicaSummary> replicas;                       // at least one
  std::string label;                                          // empty = the first replica's scheduler
  std::vector<std::pair<std::string, std::string>> metadata;  // further keys of the saved result
  int64_t num_prompts = 0;
  double request_rate = 0;  // infinite = all at once
  double burstiness = 1;
  std::optional<int64_t> max_concurrency;
  std::vector<double> percentiles = {99};                                 // those of the run's summaries
  std::vector<std::string> percentile_metrics = {"ttft", "tpot", "itl"};  // shown in the table; also e2el
  std::vector<PriorityLatencies> priorities;                              // shown where there are several
  int64_t outputs_per_request = 1;                                        // samples or beams
  BlockDiffusion diffusion = {};
  DeviceNotes notes = {};
  const ServingRun& run;

  int64_t replica_count() const;
  int64_t devices() const;
  double peak_kv_use() const;  // share of its blocks that the fullest replica held at once
};

// One sentence on a run in which every request failed.
std::string nothing_served_text(const ServingMetrics& metrics);

// vLLM's table, label by label; needs no replicas.
std::string benchmark_table(const ServingReport& report);
// The same, then our own lines.
std::string serving_text(const ServingReport& report);

// The keys of `vllm bench serve --save-result`; `date` is left empty, a simulation has none.
Json vllm_result_json(const ServingReport& report);

// What --save-detailed adds, in the order of the requests: input_lens, output_lens, ttfts, itls, start_times (seconds),
// errors. Failed requests have no output. There are no generated_texts.
void add_request_arrays(Json& result, std::span<const RequestDetail> requests);

// The same keys and ours: intervals, preemptions, cache hits, time series.
Json serving_json(const ServingReport& report);

// Latency metrics that --percentile-metrics knows.
std::vector<std::string> latency_metric_names();

}  // namespace foretoken
