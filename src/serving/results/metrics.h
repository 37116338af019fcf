// What a serving run achieved, in the terms of `vllm bench serve` (vllm/benchmarks/serve.py, calculate_metrics).
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "serving/requests/request.h"
#include "serving/results/latency_distribution.h"
#include "serving/speculation/speculation_counts.h"

namespace foretoken {

// What a request must meet to count as good; nothing = no such limit.
struct LatencyGoals {
  std::optional<double> ttft_ms, tpot_ms, e2el_ms;
  bool any() const { return ttft_ms || tpot_ms || e2el_ms; }
};

struct LatencySummary {
  double mean_ms = 0, median_ms = 0, deviation_ms = 0;
  std::vector<double> percentiles_ms;  // those asked for
};

// `percentiles` from 0 to 100.
LatencySummary latency_summary(const LatencyDistribution& values, const std::vector<double>& percentiles);

struct ServingMetrics {
  int64_t completed = 0, rejected = 0;
  std::array<int64_t, rejection_kinds> rejected_for = {};  // by Rejection
  double duration_s = 0;  // from the first request sent to the last token of the last one
  int64_t input_tokens = 0, output_tokens = 0;
  double request_throughput = 0;                             // per second
  std::optional<double> goodput;                             // completed requests per second that meet every goal
  double output_throughput = 0, total_token_throughput = 0;  // tokens per second
  double peak_output_tokens_per_s = 0;                       // in the best whole second of the run
  int64_t peak_concurrent_requests = 0;                      // in flight during one whole second
  LatencySummary ttft;                                       // arrival to first token
  LatencySummary tpot;   // (e2el - ttft) / (output tokens - 1) of each output; those of one token are left out
  LatencySummary itl;    // every gap between tokens, of all requests together
  LatencySummary e2el;   // arrival to last token
  LatencySummary queue;  // arrival to the first step
  int64_t preemptions = 0;
  int64_t shortened = 0;      // completed requests whose output was cut to the model's length
  int64_t cached_tokens = 0;  // of prompts, found in the prefix cache
  SpeculationCounts speculation;
  bool exact = true;  // else percentiles are within 0.05%
};

// Watches a run. Memory does not grow with requests: percentiles as LatencyDistribution says, and two numbers for each
// second of the run.
class MetricsCollector : public RunObserver {
 public:
  // `first_arrival`: when the first request is sent; seconds are counted from there.
  explicit MetricsCollector(Picoseconds first_arrival, const LatencyGoals& goals = {});

  void request_ended(const RequestRecord& record) override;
  void step_ran(const StepRecord& step) override;
  void token_gaps(Picoseconds gap, int64_t count) override { itl_.add(gap, count); }
  void drafts_verified(int64_t drafts, int64_t accepted) override { totals_.speculation.add(drafts, accepted); }

  // `percentiles` from 0 to 100.
  ServingMetrics metrics(const std::vector<double>& percentiles) const;

 private:
  bool meets_goals(Picoseconds ttft, Picoseconds tpot, Picoseconds e2el) const;
  size_t second_of(Picoseconds time) const;
  void count_tokens(Picoseconds time, int64_t tokens);

  Picoseconds begin_;
  LatencyGoals goals_;
  Picoseconds end_;
  ServingMetrics totals_;  // the counts of it
  int64_t good_ = 0;
  LatencyDistribution ttft_, tpot_, itl_, e2el_, queue_;
  std::vector<int64_t> tokens_;     // that came out in each second
  std::vector<int64_t> in_flight_;  // change of requests in flight at the start of each second
};

}  // namespace foretoken
