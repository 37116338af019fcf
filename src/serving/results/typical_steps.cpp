#include "serving/results/typical_steps.h"

namespace foretoken {

std::vector<TypicalStep> typical_steps(const ComposedStepsConfig& composed, const StepMix& mix, Logits logits) {
  std::vector<TypicalStep> steps;
  for (const StepShare& share : mix.shares()) {
    if (share.steps == 0) continue;
    StepRequest request = share.typical();
    request.kv_dtype = composed.kv_dtype;
    request.logits = logits;
    const DeviceModels& models = composed.models;
    steps.push_back({.device = models.kernels.device().name,
                     .share = share,
                     .step = estimate_step(composed.model, request, composed.plan, models.kernels, composed.stack,
                                           {.collectives = models.collectives.get()})});
  }
  return steps;
}

}  // namespace foretoken
