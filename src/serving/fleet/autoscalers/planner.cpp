// NVIDIA Dynamo's planner with its constant load predictor (docs.nvidia.com/dynamo, "Planner Design"): the next
// interval brings the requests and lengths of the last one; replicas are those that serve them at the latency goals.
// Its correction of the goals by measured latencies is left out: here the capacity is that of the simulated engine.
#include "serving/fleet/autoscalers/forecast.h"
#include "serving/fleet/autoscalers/list.h"

namespace foretoken {
namespace {

class Planner final : public Autoscaler {
 public:
  explicit Planner(const AutoscalerSettings& settings) : settings_(settings) {}

  int64_t wanted(const FleetView& view) override {
    if (view.arrived == 0) return settings_.least;
    const auto requests = static_cast<double>(view.arrived);
    return replicas_for(settings_, view.rate(), static_cast<double>(view.input_tokens) / requests,
                        static_cast<double>(view.output_tokens) / requests);
  }

 private:
  AutoscalerSettings settings_;
};

}  // namespace

std::unique_ptr<Autoscaler> make_planner(const AutoscalerSettings& settings) {
  return std::make_unique<Planner>(settings);
}

}  // namespace foretoken
