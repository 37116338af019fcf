// Latencies of all requests as curves: which share of them took no longer.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "serving/requests/request.h"
#include "serving/results/latency_distribution.h"

namespace foretoken {

class LatencyCurves : public RunObserver {
 public:
  void request_ended(const RequestRecord& record) override;

  // Milliseconds and the percentage of completed requests that took at most so long; empty without requests.
  using Curve = std::vector<std::pair<double, double>>;
  Curve ttft() const { return curve(ttft_); }
  Curve tpot() const { return curve(tpot_); }
  Curve e2el() const { return curve(e2el_); }

 private:
  static Curve curve(const LatencyDistribution& values);
  LatencyDistribution ttft_, tpot_, e2el_;
};

}  // namespace foretoken
