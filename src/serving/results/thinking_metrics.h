// What thinking costs: tokens that nobody reads, and the time until the answer begins.
#pragma once

#include <cstdint>
#include <vector>

#include "serving/results/metrics.h"

namespace foretoken {

struct ThinkingSummary {
  int64_t requests = 0;   // completed, that thought
  int64_t tokens = 0;     // of their thoughts
  int64_t cut = 0;        // of these requests, that ended before their answer began
  LatencySummary answer;  // arrival to the first token of the answer, of the others
};

class ThinkingMetrics final : public RunObserver {
 public:
  void request_ended(const RequestRecord& record) override;
  ThinkingSummary summary(const std::vector<double>& percentiles) const;

 private:
  ThinkingSummary counts_;
  LatencyDistribution answer_;
};

}  // namespace foretoken
