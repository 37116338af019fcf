// Latencies of the requests of each priority.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "serving/results/metrics.h"

namespace foretoken {

struct PriorityLatencies {
  int32_t priority = 0;
  int64_t completed = 0, output_tokens = 0;
  LatencySummary ttft, tpot, e2el;
};

// Priorities beyond the first `most` different ones are counted with none: a table of them would help nobody.
class PriorityMetrics : public RunObserver {
 public:
  // `key`: another field that requests are told apart by.
  explicit PriorityMetrics(size_t most = 16, int32_t RequestRecord::*key = &RequestRecord::priority)
      : most_(most), key_(key) {}
  void request_ended(const RequestRecord& record) override;

  // Most urgent first; `percentiles` from 0 to 100.
  std::vector<PriorityLatencies> latencies(const std::vector<double>& percentiles) const;

 private:
  struct Latencies {
    LatencyDistribution ttft, tpot, e2el;
    int64_t output_tokens = 0;
  };
  size_t most_;
  int32_t RequestRecord::*key_;
  std::map<int32_t, Latencies> by_priority_;
};

}  // namespace foretoken
