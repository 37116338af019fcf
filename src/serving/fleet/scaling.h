// The number of replicas of one pool over time: an autoscaler, its limits, and how late replicas go.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>

#include "base/simulated_time.h"
#include "serving/fleet/autoscaler.h"
#include "serving/fleet/fleet.h"

namespace foretoken {

class PoolScaling {
 public:
  // From `settings.least` replicas to all that the pool may have.
  PoolScaling(const AutoscalerSettings& settings, const FleetPool& pool, Seconds cold_start);

  int64_t wanted() const { return wanted_; }
  void arrived(int64_t input_tokens, int64_t output_tokens);
  // Every interval: `view` without what arrived, which is counted here.
  void look(FleetView view);

 private:
  struct Recommendation {
    double at_s = 0;
    int64_t replicas = 0;
  };

  AutoscalerSettings settings_;
  int64_t most_, wanted_;
  std::unique_ptr<Autoscaler> autoscaler_;
  FleetView counted_;                  // since the last look
  std::deque<Recommendation> recent_;  // within the stabilization window, each more than all after it
};

}  // namespace foretoken
