// Kubernetes' Horizontal Pod Autoscaler: replicas x (metric / target), rounded up, unless the ratio is within the
// tolerance of one. Replicas that are still starting count with nothing, as pods that are not ready do when it scales
// up.
#include <cmath>

#include "serving/fleet/autoscalers/list.h"

namespace foretoken {
namespace {

class Reactive final : public Autoscaler {
 public:
  explicit Reactive(const AutoscalerSettings& settings) : settings_(settings) {}

  int64_t wanted(const FleetView& view) override {
    const int64_t active = view.active();
    if (active == 0) return settings_.least;
    const double sum = settings_.by_kv_use ? view.kv_use : static_cast<double>(view.outstanding);
    const double ratio = sum / (settings_.target * static_cast<double>(active));
    if (std::abs(ratio - 1) <= settings_.tolerance) return active;
    return static_cast<int64_t>(std::ceil(sum / settings_.target));
  }

 private:
  AutoscalerSettings settings_;
};

}  // namespace

std::unique_ptr<Autoscaler> make_reactive(const AutoscalerSettings& settings) {
  return std::make_unique<Reactive>(settings);
}

}  // namespace foretoken
