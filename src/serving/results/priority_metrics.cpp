#include "serving/results/priority_metrics.h"

namespace foretoken {

void PriorityMetrics::request_ended(const RequestRecord& record) {
  if (record.outcome == RequestOutcome::rejected) return;
  const int32_t key = record.*key_;
  if (!by_priority_.contains(key) && by_priority_.size() == most_) return;
  Latencies& latencies = by_priority_[key];
  latencies.output_tokens += record.output_tokens;
  latencies.ttft.add(record.ttft());
  latencies.e2el.add(record.e2el());
  if (record.has_gaps()) latencies.tpot.add(record.tpot());
}

std::vector<PriorityLatencies> PriorityMetrics::latencies(const std::vector<double>& percentiles) const {
  std::vector<PriorityLatencies> all;
  for (const auto& [priority, latencies] : by_priority_) {
    all.push_back({.priority = priority,
                   .completed = latencies.ttft.count(),
                   .output_tokens = latencies.output_tokens,
                   .ttft = latency_summary(latencies.ttft, percentiles),
                   .tpot = latency_summary(latencies.tpot, percentiles),
                   .e2el = latency_summary(latencies.e2el, percentiles)});
  }
  return all;
}

}  // namespace foretoken
