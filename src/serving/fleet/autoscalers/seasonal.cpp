// Replicas for the most that came one period ago in the time until a replica started now would serve, scaled by how
// much more comes now than then. Until a period has passed: the trend alone.
#include <algorithm>
#include <cmath>
#include <vector>

#include "serving/fleet/autoscalers/forecast.h"
#include "serving/fleet/autoscalers/list.h"

namespace foretoken {
namespace {

class Seasonal final : public Autoscaler {
 public:
  explicit Seasonal(const AutoscalerSettings& settings)
      : settings_(settings),
        period_(static_cast<size_t>(std::max(1.0, std::round(settings.period_s / settings.interval_s)))),
        compared_(std::max<size_t>(1, period_ / 24)) {}

  int64_t wanted(const FleetView& view) override {
    lengths_.add(view);
    trend_.add(view.rate());
    rates_.push_back(view.rate());
    if (!lengths_.known()) return settings_.least;
    return replicas_for(settings_, forecast(), lengths_.input_tokens(), lengths_.output_tokens());
  }

 private:
  // Sum of the rates of `compared_` intervals up to the last, or up to the one a period before.
  double recent(size_t before) const {
    double sum = 0;
    for (size_t i = 0; i < compared_; ++i) sum += rates_[rates_.size() - 1 - before - i];
    return sum;
  }

  double forecast() const {
    const auto ahead = static_cast<size_t>(std::ceil(intervals_ahead(settings_)));
    if (rates_.size() < period_ + compared_) return std::max(trend_.ahead(0), trend_.ahead(static_cast<double>(ahead)));
    const double then = recent(period_), level = then > 0 ? recent(0) / then : 1;
    double most = trend_.ahead(0);
    for (size_t i = 1; i <= std::min(ahead, period_); ++i) {
      most = std::max(most, level * rates_[rates_.size() - 1 - period_ + i]);
    }
    return most;
  }

  AutoscalerSettings settings_;
  size_t period_, compared_;  // intervals
  MeanLengths lengths_;
  RateTrend trend_;
  std::vector<double> rates_;  // of all intervals
};

}  // namespace

std::unique_ptr<Autoscaler> make_seasonal(const AutoscalerSettings& settings) {
  return std::make_unique<Seasonal>(settings);
}

}  // namespace foretoken
