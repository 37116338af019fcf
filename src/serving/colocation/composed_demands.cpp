#include "serving/colocation/composed_demands.h"

#include <algorithm>
#include <utility>

#include "compose/step_estimate.h"
#include "serving/steps/equal_step.h"
#include "serving/steps/size_grid.h"

namespace foretoken {
namespace {

class ComposedDemands final : public StepDemands {
 public:
  explicit ComposedDemands(ComposedStepsConfig config) : config_(std::move(config)) {}

  StepDemand of(const StepBatch& batch) override {
    const std::array<double, 3> sizes = step_sizes(batch);
    return {.compute = at(compute_, sizes, &StepDemand::compute),
            .memory = at(memory_, sizes, &StepDemand::memory),
            .busy = at(busy_, sizes, &StepDemand::busy)};
  }

 private:
  using Shares = SizeGrid<3, 2>;

  double at(Shares& shares, const std::array<double, 3>& sizes, double StepDemand::*part) const {
    return shares.at(0, sizes, [&](const auto& node) { return exactly(demand_of(node).*part); }).value;
  }

  StepDemand demand_of(const std::array<int64_t, 3>& sizes) const {
    if (sizes[0] + sizes[1] == 0) return {};
    return step_demand(estimate_step(config_.model, equal_step(sizes, config_.kv_dtype), config_.plan,
                                     config_.models.kernels, config_.stack,
                                     {.collectives = config_.models.collectives.get()}));
  }

  ComposedStepsConfig config_;
  Shares compute_, memory_, busy_;
};

}  // namespace

StepDemand step_demand(const StepEstimate& step) {
  StepDemand held;  // seconds
  for (const StageEstimate& stage : step.stages) {
    for (const TimedLaunch& timed : stage.launches) {
      if (!timed.kernel) continue;
      const double seconds = timed.seconds.value;
      const double calls = seconds / timed.kernel->seconds.value;
      const bool multiplies = timed.kernel->bound == Bound::compute;
      held.compute += multiplies ? seconds : std::min(seconds, calls * timed.kernel->compute.value());
      held.memory += multiplies ? std::min(seconds, calls * timed.kernel->memory.value()) : seconds;
      held.busy += seconds;
    }
  }
  // Kernels that overlap the host's work may add up to more than the step.
  const double whole = std::max(step.seconds.value, held.busy);
  return {.compute = held.compute / whole, .memory = held.memory / whole, .busy = held.busy / whole};
}

std::unique_ptr<StepDemands> composed_demands(ComposedStepsConfig config) {
  return std::make_unique<ComposedDemands>(std::move(config));
}

}  // namespace foretoken
