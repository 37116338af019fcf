// What autoscalers that look ahead have in common.
#pragma once

#include <cstdint>

#include "serving/fleet/autoscaler.h"

namespace foretoken {

// Replicas that serve `rate` requests/s of these lengths at the planned utilization.
int64_t replicas_for(const AutoscalerSettings& settings, double rate, double input_tokens, double output_tokens);

// Intervals from one look until a replica that is started now has served for one.
double intervals_ahead(const AutoscalerSettings& settings);

// Mean lengths of all requests so far.
class MeanLengths {
 public:
  void add(const FleetView& view);
  bool known() const { return requests_ > 0; }
  double input_tokens() const { return input_ / requests_; }
  double output_tokens() const { return output_ / requests_; }

 private:
  double requests_ = 0, input_ = 0, output_ = 0;
};

// Level and trend of a rate by double exponential smoothing. C. C. Holt, "Forecasting seasonals and trends by
// exponentially weighted moving averages" (1957). Of Poisson arrivals at a constant rate the level has sqrt(a / (2 -
// a)) = 0.42 of the deviation of one interval's rate.
class RateTrend {
 public:
  void add(double rate);
  // So many intervals from the last one; not below 0.
  double ahead(double intervals) const;

 private:
  static constexpr double level_weight = 0.3, trend_weight = 0.1;
  bool any_ = false;
  double level_ = 0, trend_ = 0;
};

}  // namespace foretoken
