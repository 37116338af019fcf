#include "serving/steps/sustained_steps.h"

#include <algorithm>
#include <utility>

#include "compose/step_estimate.h"
#include "compose/sustained_step.h"
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
    // Drafts count as decodes; together they read the same cache.
    const auto decodes = static_cast<double>(batch.decodes + batch.drafted_tokens);
    const double context = batch.decodes > 0 ? static_cast<double>(batch.decode_context_tokens) / decodes : 0;
    const double prompt_tokens = static_cast<double>(batch.new_tokens()) - decodes;
    return slowdowns_.at(0, {prompt_tokens, decodes, context},
                         [&](const auto& node) { return slowdown_of(node[0], node[1], node[2]); });
  }

  Estimate slowdown_of(int64_t prompt_tokens, int64_t decodes, int64_t context) const {
    if (prompt_tokens + decodes == 0) return exactly(1);
    StepRequest request{.batch = decodes, .context_len = context, .kv_dtype = config_.kv_dtype};
    if (prompt_tokens > 0) {
      request.phase = decodes > 0 ? StepPhase::mixed : StepPhase::prefill;
      request.batch = decodes + 1;
      request.input_len = prompt_tokens;
      request.context_len = decodes > 0 ? context : 0;
      request.prompts = decodes > 0 ? 1 : 0;
    }
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
