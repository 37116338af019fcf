#include "compose/step_estimate.h"

#include <algorithm>

#include "network/collective.h"

namespace foretoken {
namespace {

Work times(Work work, double count) {
  work.flops = work.flops * count;
  work.weights_read = work.weights_read * count;
  work.activations_read = work.activations_read * count;
  work.written = work.written * count;
  return work;
}

TimedOperator time_operator(const Operator& call, const KernelPredictor& predictor) {
  const auto count = static_cast<double>(call.count);
  if (const auto* collective = std::get_if<CollectiveShape>(&call.shape)) {
    const Fabric fabric = collective->ranks > 1 ? fabric_of(predictor.device()) : Fabric{};
    return {.call = call,
            .kernel = std::nullopt,
            .seconds = scaled(collective_seconds(*collective, fabric), count),
            .work = {}};
  }
  const KernelEstimate kernel = predictor.estimate(call.shape);
  return {.call = call, .kernel = kernel, .seconds = scaled(kernel.seconds, count), .work = times(kernel.work, count)};
}

StageEstimate estimate_stage(const Model& model, const StepRequest& request, const ParallelPlan& plan, int64_t stage,
                             const KernelPredictor& predictor) {
  StageEstimate result;
  std::vector<Estimate> parts;
  for (const Operator& call : stage_operators(model, request, plan, stage)) {
    result.operators.push_back(time_operator(call, predictor));
    parts.push_back(result.operators.back().seconds);
  }
  result.seconds = sum_of_correlated(parts);
  result.memory = rank_memory(model, request, plan, stage);
  return result;
}

// A training step multiplies three times for each forward multiply: forward, by the weights and by the inputs; with
// adapters the frozen weights need no gradient of their own.
double passes(const StepRequest& request) {
  if (request.phase != StepPhase::train) return 1;
  return request.lora.rank > 0 ? 2 : 3;
}

double tokens_of(const StepRequest& request) {
  const auto batch = static_cast<double>(request.batch);
  const auto input = static_cast<double>(request.input_len);
  switch (request.phase) {
    case StepPhase::decode:
      return batch;
    case StepPhase::mixed:
      return static_cast<double>(request.prompts) * input + batch - static_cast<double>(request.prompts);
    case StepPhase::prefill:
    case StepPhase::train:
      return batch * input;
  }
  return batch;
}

}  // namespace

StepEstimate estimate_step(const Model& model, const StepRequest& request, const ParallelPlan& plan,
                           const KernelPredictor& predictor) {
  StepEstimate result{.request = request, .plan = plan};
  std::vector<Estimate> stage_seconds;
  double fullest = 0;
  for (int64_t stage = 0; stage < plan.pipeline; ++stage) {
    result.stages.push_back(estimate_stage(model, request, plan, stage, predictor));
    stage_seconds.push_back(result.stages.back().seconds);
    fullest = std::max(fullest, result.stages.back().memory.total().value());
  }
  result.seconds = sum_of_correlated(stage_seconds);
  result.model_flops = model_flops(model, request) * passes(request);
  result.tokens = tokens_of(request) * static_cast<double>(plan.data);

  const auto replica = static_cast<double>(plan.tensor * plan.pipeline * plan.context);
  result.devices = replica * static_cast<double>(plan.data);
  const Device& device = predictor.device();
  if (const auto peak = device.peak_or_fallback(facts(model.scheme).math)) {
    result.model_flops_utilization = result.model_flops / (*peak * Seconds(result.seconds.value)) / replica;
  }
  if (device.memory) {
    result.device_memory = device.memory->value;
    result.fits_in_memory = fullest <= result.device_memory.value();
  }
  return result;
}

}  // namespace foretoken
