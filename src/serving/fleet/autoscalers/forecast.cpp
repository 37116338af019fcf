#include "serving/fleet/autoscalers/forecast.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"

namespace foretoken {

int64_t replicas_for(const AutoscalerSettings& settings, double rate, double input_tokens, double output_tokens) {
  const double capacity = settings.capacity(input_tokens, output_tokens) * settings.utilization;
  ensure(capacity > 0, "a replica serves some requests");
  return static_cast<int64_t>(std::ceil(std::min(rate / capacity, 1e9)));
}

double intervals_ahead(const AutoscalerSettings& settings) {
  return settings.cold_start_s / settings.interval_s + 1;
}

void MeanLengths::add(const FleetView& view) {
  requests_ += static_cast<double>(view.arrived);
  input_ += static_cast<double>(view.input_tokens);
  output_ += static_cast<double>(view.output_tokens);
}

void RateTrend::add(double rate) {
  if (!any_) {
    any_ = true;
    level_ = rate;
    return;
  }
  const double before = level_;
  level_ = level_weight * rate + (1 - level_weight) * (level_ + trend_);
  trend_ = trend_weight * (level_ - before) + (1 - trend_weight) * trend_;
}

double RateTrend::ahead(double intervals) const {
  return std::max(0.0, level_ + trend_ * intervals);
}

}  // namespace foretoken
