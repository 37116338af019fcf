#include "serving/steps/sustained_steps.h"

#include <array>
#include <utility>

#include "compose/step_estimate.h"
#include "compose/sustained_step.h"
#include "serving/steps/equal_step.h"
#include "serving/steps/size_grid.h"

namespace foretoken {
namespace {

class SustainedSteps final : public StepTimes {
 public:
  SustainedSteps(std::unique_ptr<StepTimes> cool, ComposedStepsConfig config)
      : cool_(std::move(cool)), config_(std::move(config)) {}

  Estimate step_seconds(const StepBatch& batch) override {
    return product_of_independent(cool_->step_seconds(batch), slowdown(batch));
  }

 private:
  Estimate slowdown(const StepBatch& batch) {
    return slowdowns_.at(0, step_sizes(batch), [&](const auto& node) { return slowdown_of(node); });
  }

  Estimate slowdown_of(const std::array<int64_t, 3>& sizes) const {
    if (sizes[0] + sizes[1] == 0) return exactly(1);
    const StepRequest request = equal_step(sizes, config_.kv_dtype);
    const StepEstimate step = estimate_step(config_.model, request, config_.plan, config_.models.kernels, config_.stack,
                                            {.collectives = config_.models.collectives.get()});
    const double slowdown =
        sustained_step(step, *config_.models.power, config_.models.kernels.device()).power.slowdown.value;
    return {.value = slowdown, .low = 1, .high = 2 * slowdown - 1, .kind = Confidence::extrapolated};
  }

  std::unique_ptr<StepTimes> cool_;
  ComposedStepsConfig config_;
  SizeGrid<3, 2> slowdowns_;  // prompt tokens, decodes, their mean context
};

}  // namespace

std::unique_ptr<StepTimes> sustained_steps(std::unique_ptr<StepTimes> cool, ComposedStepsConfig config) {
  if (!config.models.power) return cool;
  return std::make_unique<SustainedSteps>(std::move(cool), std::move(config));
}

}  // namespace foretoken
