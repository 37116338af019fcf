#include "compose/step_spec.h"

#include "compose/serving_engine.h"
#include "library/library.h"

namespace foretoken {

StepPrediction predict_step(const Library& library, const StepSpec& spec) {
  Model model = open_model(library, spec.model, library.hardware().device(spec.device), spec.plan);
  StepRequest request = spec.request;
  request.kv_dtype = kv_cache_dtype(spec.model, model);
  const std::string usual = request.phase == StepPhase::train ? "fused" : "vllm";
  Stack stack = stacks_of(library).stack(spec.stack.empty() ? usual : spec.stack);
  DeviceModels models = library.device_models(spec.device, spec.plan, spec.tier);
  if (!spec.stack.empty()) check_engine_runs_on("--stack", spec.stack, models.kernels.device());
  StepEstimate step = estimate_step(
      model, request, spec.plan, models.kernels, stack,
      {.dispatch = spec.dispatch, .host_factor = spec.host_factor, .collectives = models.collectives.get()});
  return {.model = std::move(model), .models = std::move(models), .stack = std::move(stack), .step = std::move(step)};
}

}  // namespace foretoken
