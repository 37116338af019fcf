// Replicas for the rate of now or for the one that its trend leads to when a replica started now would serve, whichever
// is more.
#include <algorithm>

#include "serving/fleet/autoscalers/forecast.h"
#include "serving/fleet/autoscalers/list.h"

namespace foretoken {
namespace {

class Predictive final : public Autoscaler {
 public:
  explicit Predictive(const AutoscalerSettings& settings) : settings_(settings) {}

  int64_t wanted(const FleetView& view) override {
    lengths_.add(view);
    trend_.add(view.rate());
    if (!lengths_.known()) return settings_.least;
    const double rate = std::max(trend_.ahead(0), trend_.ahead(intervals_ahead(settings_)));
    return replicas_for(settings_, rate, lengths_.input_tokens(), lengths_.output_tokens());
  }

 private:
  AutoscalerSettings settings_;
  MeanLengths lengths_;
  RateTrend trend_;
};

}  // namespace

std::unique_ptr<Autoscaler> make_predictive(const AutoscalerSettings& settings) {
  return std::make_unique<Predictive>(settings);
}

}  // namespace foretoken
