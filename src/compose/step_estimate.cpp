#include "compose/step_estimate.h"

#include <algorithm>
#include <span>

#include <fmt/format.h>

#include "base/error.h"
#include "compose/expert_kernels.h"
#include "compose/linear_kernels.h"
#include "compose/lowering.h"
#include "compose/serving_engine.h"
#include "model/onnx/summary.h"
#include "model/onnx/work.h"
#include "network/calibration/stack_collectives.h"

namespace foretoken {
namespace {

Work times(Work work, double count) {
  work.flops = work.flops * count;
  work.weights_read = work.weights_read * count;
  work.activations_read = work.activations_read * count;
  work.written = work.written * count;
  return work;
}

bool is_attention(const KernelShape& shape) {
  return std::holds_alternative<AttentionShape>(shape) || std::holds_alternative<MixedAttentionShape>(shape) ||
         std::holds_alternative<LatentAttentionShape>(shape) || std::holds_alternative<LinearAttentionShape>(shape);
}

TimedLaunch time_launch(const Launch& launch, StepPhase phase, const KernelPredictor& predictor, const Stack& stack,
                        const CommunicationPredictor* collectives) {
  const auto count = static_cast<double>(launch.count);
  if (const auto* collective = std::get_if<CollectiveShape>(&launch.shape)) {
    const Estimate seconds = stack_collective_seconds(*collective, launch.variant, predictor.device(), collectives);
    return {.launch = launch, .kernel = std::nullopt, .seconds = scaled(seconds, count), .work = {}};
  }
  const auto* linear = std::get_if<GemmShape>(&launch.shape);
  const auto* experts = std::get_if<MoeShape>(&launch.shape);
  const KernelEstimate kernel = linear != nullptr    ? linear_estimate(*linear, launch.variant, predictor, stack)
                                : experts != nullptr ? expert_estimate(*experts, launch.variant, predictor, stack)
                                                     : predictor.estimate(launch.shape, launch.variant);
  return {.launch = launch,
          .kernel = kernel,
          .seconds = scaled(kernel.seconds, count * stack.kernel_factor(phase)),
          .work = times(kernel.work, count)};
}

std::vector<DeviceCall> device_calls(std::span<const TimedLaunch> launches) {
  std::vector<DeviceCall> calls;
  calls.reserve(launches.size());
  for (const TimedLaunch& timed : launches) {
    calls.push_back({.seconds = timed.seconds.value / static_cast<double>(timed.launch.count),
                     .collective = !timed.kernel.has_value(),
                     .attention = is_attention(timed.launch.shape)});
  }
  return calls;
}

std::vector<Launch> plain_launches(std::span<const TimedLaunch> timed) {
  std::vector<Launch> launches;
  launches.reserve(timed.size());
  for (const TimedLaunch& one : timed) launches.push_back(one.launch);
  return launches;
}

// Adds up the launches of each operator. It multiplies in the format of the launch with the most FLOPs.
std::vector<TimedOperator> by_operator(const std::vector<Operator>& calls, std::span<const TimedLaunch> launches) {
  std::vector<TimedOperator> operators;
  std::vector<Estimate> parts;
  Flops most;
  for (size_t i = 0; i < launches.size(); ++i) {
    const TimedLaunch& one = launches[i];
    if (i == 0 || one.launch.call != launches[i - 1].launch.call) {
      operators.push_back(
          {.call = calls[one.launch.call], .kernel = one.kernel, .seconds = {}, .work = {.math = one.work.math}});
      parts.clear();
      most = one.work.flops;
    }
    TimedOperator& timed = operators.back();
    const bool slowest =
        std::all_of(parts.begin(), parts.end(), [&](const Estimate& other) { return other.value < one.seconds.value; });
    if (slowest) timed.kernel = one.kernel;
    parts.push_back(one.seconds);
    timed.seconds = sum_of_correlated(parts);
    if (one.work.flops > most) {
      most = one.work.flops;
      timed.work.math = one.work.math;
    }
    timed.work.flops += one.work.flops;
    timed.work.weights_read += one.work.weights_read;
    timed.work.activations_read += one.work.activations_read;
    timed.work.written += one.work.written;
    timed.launches += one.launch.count;
  }
  return operators;
}

// A step padded to a captured graph: dense operators see the padded tokens, attention the real ones.
std::vector<Operator> padded_operators(const Model& model, const StepRequest& request, const ParallelPlan& plan,
                                       int64_t stage, int64_t padded_batch) {
  std::vector<Operator> real = stage_operators(model, request, plan, stage);
  if (padded_batch == request.batch) return real;
  StepRequest larger = request;
  larger.batch = padded_batch;
  std::vector<Operator> padded = stage_operators(model, larger, plan, stage);
  ensure(padded.size() == real.size(), "a larger batch has the same operators");
  for (size_t i = 0; i < real.size(); ++i) {
    if (is_attention(real[i].shape)) padded[i] = real[i];
  }
  return padded;
}

Estimate wall_estimate(const StageEstimate& stage, const Stack& stack, Dispatch kind, double host_factor) {
  const std::vector<DeviceCall> calls = device_calls(stage.launches);
  const std::vector<Launch> launches = plain_launches(stage.launches);
  const auto seconds = [&](double host, double device) {
    return dispatch(stack, launches, calls, stage.calls,
                    {.kind = kind, .host_factor = host_factor * host, .device_factor = device})
        .seconds;
  };
  const Estimate& kernels = stage.kernels;
  return {.value = stage.time.seconds,
          .low = seconds(stack.costs.host_low, stack.costs.kernels_low * kernels.low / kernels.value),
          .high = seconds(stack.costs.host_high, stack.costs.kernels_high * kernels.high / kernels.value),
          .kind = kernels.kind};
}

// Operators in the order in which they run; memory is left to the caller.
StageEstimate estimate_calls(std::vector<Operator> operators, StepPhase phase, std::string_view family,
                             const KernelPredictor& predictor, const Stack& stack, Dispatch kind,
                             const ExecutionOptions& options) {
  StageEstimate result{.calls = std::move(operators)};
  KernelSum kernels(predictor.correlations());
  for (const Launch& launch : lower(stack, result.calls, phase, family)) {
    result.launches.push_back(time_launch(launch, phase, predictor, stack, options.collectives));
    kernels.add(result.launches.back().seconds, error_form(launch.shape, launch.variant));
  }
  result.operators = by_operator(result.calls, result.launches);
  result.kernels = kernels.total();
  result.time = dispatch(stack, plain_launches(result.launches), device_calls(result.launches), result.calls,
                         {.kind = kind, .host_factor = options.host_factor});
  result.seconds = wall_estimate(result, stack, kind, options.host_factor);
  return result;
}

StageEstimate estimate_stage(const Model& model, const StepRequest& request, const ParallelPlan& plan, int64_t stage,
                             const KernelPredictor& predictor, const Stack& stack, Dispatch kind,
                             const ExecutionOptions& options, int64_t padded_batch) {
  StageEstimate result =
      estimate_calls(padded_operators(model, request, plan, stage, padded_batch > 0 ? padded_batch : request.batch),
                     request.phase, model.family, predictor, stack, kind, options);
  if (padded_batch > request.batch) {
    double real = 0;
    for (const Launch& launch :
         lower(stack, stage_operators(model, request, plan, stage), request.phase, model.family)) {
      real += time_launch(launch, request.phase, predictor, stack, options.collectives).seconds.value;
    }
    result.padding = std::max(0.0, result.kernels.value - real);
  }
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
                           const KernelPredictor& predictor, const Stack& stack, const ExecutionOptions& options) {
  if (!stack.runs(request.phase)) {
    throw InputError({.source = fmt::format("stack {}", stack.name),
                      .path = "dispatch",
                      .value = std::string(step_phase_name(request.phase)),
                      .expected = "a phase that this software runs; hf-eager and fused run all"});
  }
  const auto tokens = static_cast<int64_t>(tokens_of(request));
  const Dispatch kind = options.dispatch.value_or(stack.dispatch_of(request.phase, tokens));
  StepEstimate result{.request = request, .plan = plan, .stack = stack.name, .dispatch = kind};
  if (request.phase == StepPhase::decode && kind == Dispatch::graph) {
    result.padded_batch = stack.padded_tokens(request.batch).value_or(0);
  }
  std::vector<Estimate> stage_seconds;
  double fullest = 0;
  for (int64_t stage = 0; stage < plan.pipeline; ++stage) {
    result.stages.push_back(
        estimate_stage(model, request, plan, stage, predictor, stack, kind, options, result.padded_batch));
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
  if (device.memory || device.allocatable_memory) {
    result.device_memory = Bytes(allocatable_bytes(device).value);
    result.fits_in_memory = fullest <= result.device_memory.value();
  }
  return result;
}

StageEstimate estimate_graph(const OnnxGraph& graph, const KernelPredictor& predictor, const Stack& stack,
                             const ExecutionOptions& options) {
  StageEstimate result = estimate_calls(onnx_operators(graph), StepPhase::prefill, {}, predictor, stack,
                                        options.dispatch.value_or(Dispatch::fused), options);
  const OnnxSummary summary = summarize(graph);
  result.memory = {.weights = summary.weights, .activations = summary.peak_activations};
  return result;
}

std::vector<TimelineEvent> step_timeline(const StageEstimate& stage, const Stack& stack, Dispatch kind,
                                         double host_factor) {
  std::vector<TimelineEvent> events;
  dispatch(stack, plain_launches(stage.launches), device_calls(stage.launches), stage.calls,
           {.kind = kind, .host_factor = host_factor, .timeline = &events});
  return events;
}

}  // namespace foretoken
