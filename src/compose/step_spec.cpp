#include "compose/step_spec.h"

#include <utility>

#include <fmt/format.h>

#include "compose/calibrated_stack.h"
#include "compose/captured_sizes.h"
#include "compose/two_batch.h"
#include "compose/vendor_stack.h"
#include "library/library.h"

namespace foretoken {
namespace {

// Of a device whose memory nobody knows, engines' own limits are not known either.
void capture_as_engine(Stack& stack, const EngineFlags& flags, const Model& model, const Device& device,
                       const ParallelPlan& plan) {
  if (flags.enforce_eager) {
    run_uncompiled(stack);
    return;
  }
  if (!runs_on(engine_kind(flags.engine), device)) return;
  if (device.memory || device.allocatable_memory) {
    capture_up_to(stack, largest_graph(resolved(flags, model, device, plan)));
  } else if (flags.max_cudagraph_capture_size > 0) {
    capture_up_to(stack, flags.max_cudagraph_capture_size);
  }
}

}  // namespace

PlacementSpec placement_of(const StepSpec& spec) {
  PlacementSpec placement = spec.placement;
  if (placement.order.empty() && spec.request.phase == StepPhase::train) {
    const auto usual = usual_rank_order(spec.request.phase);
    placement.order.assign(usual.begin(), usual.end());
  }
  return placement;
}

StepPredictor::StepPredictor(const Library& library, DeviceModelMaker models)
    : library_(library), make_models_(std::move(models)), hardware_(library.hardware()), stacks_(stacks_of(library)) {}

const Model& StepPredictor::model_of(const StepSpec& spec) {
  const ModelSpec& asked = spec.model;
  const std::string key = fmt::format("{} | {} | {} | {} | {} | {} | {}", asked.model, asked.quantization,
                                      asked.dtype ? dtype_name(*asked.dtype) : "", asked.expert_popularity,
                                      asked.redundant_experts, spec.device, spec.plan.expert);
  const auto known = models_.find(key);
  if (known != models_.end()) return known->second;
  return models_.emplace(key, open_model(library_, asked, hardware_.device(spec.device), spec.plan)).first->second;
}

const DeviceModels& StepPredictor::models_of(const StepSpec& spec) {
  const PlacementSpec placement = placement_of(spec);
  const ParallelPlan& plan = spec.plan;
  const std::string key = fmt::format("{} | {}", tier_name(spec.tier), device_models_key(spec.device, plan, placement));
  const auto known = devices_.find(key);
  if (known != devices_.end()) return known->second;
  // A user's own device is found by the file that was named.
  DeviceModels models = make_models_ ? make_models_(hardware_.device(spec.device), plan, placement)
                                     : library_.device_models(spec.device, plan, spec.tier, placement);
  return devices_.emplace(key, std::move(models)).first->second;
}

const Stack& StepPredictor::stack_named(const std::string& name) {
  const auto known = stacks_by_name_.find(name);
  return known != stacks_by_name_.end() ? known->second
                                        : stacks_by_name_.emplace(name, stacks_.stack(name)).first->second;
}

StepPrediction StepPredictor::predict(const StepSpec& spec) {
  const Model& model = model_of(spec);
  StepRequest request = spec.request;
  request.kv_dtype = kv_cache_dtype(spec.model, model);
  const std::string usual = request.phase == StepPhase::train ? "fused" : "vllm";
  const std::string named = spec.stack.empty() ? usual : spec.stack;
  const DeviceModels& models = models_of(spec);
  Stack stack = stack_on(models.kernels.device(), named, [&](const std::string& name) { return stack_named(name); });
  const auto is_called = [&](const std::string& name) { return stack.name == name || named == name; };
  if (const CalibratedDeployment* const deployment = library_.deployment().get();
      deployment != nullptr && (is_called(deployment->stack) || is_called(deployment->engine))) {
    const auto known =
        deployment->constants_of(deployment->engine, models.kernels.device().name, model.name, spec.plan);
    if (known) stack = calibrated(std::move(stack), *known);
  }
  if (!spec.stack.empty()) check_engine_runs_on("stack", spec.stack, models.kernels.device());
  if (spec.engine) capture_as_engine(stack, *spec.engine, model, models.kernels.device(), spec.plan);
  if (spec.two_batch_overlap) check_two_batches(model, spec.plan);
  StepEstimate step = estimate_step(model, request, spec.plan, models.kernels, stack,
                                    {.dispatch = spec.dispatch,
                                     .host_factor = spec.host_factor,
                                     .two_batch_overlap = spec.two_batch_overlap,
                                     .collectives = models.collectives.get()});
  step.rank_order = placement_of(spec).order;
  if (models.collectives) step.links = step_links(step, *models.collectives);
  return {.model = model, .models = models, .stack = std::move(stack), .step = std::move(step)};
}

StepPrediction predict_step(const Library& library, const StepSpec& spec) {
  return StepPredictor(library).predict(spec);
}

}  // namespace foretoken
