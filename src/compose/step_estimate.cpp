#include "compose/step_estimate.h"

#include <algorithm>
#include <iterator>
#include <span>

#include <fmt/format.h>

#include "base/error.h"
#include "compose/calibrated_stack.h"
#include "compose/computing_memory.h"
#include "compose/serving_engine.h"
#include "compose/two_batch.h"
#include "model/onnx/summary.h"
#include "model/onnx/work.h"

namespace foretoken {
namespace {

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

StepShares shares_of(const StageEstimate& stage, const Stack& stack, StepPhase phase) {
  const DispatchTime& time = stage.time;
  StepShares shares{.phase = phase, .host = visible_host(stack, time.seconds, time.host_stall)};
  shares.kernels = time.kernels;
  shares.collectives = time.communication;
  for (const TimedLaunch& one : stage.launches) {
    if (is_attention(one.launch.shape)) shares.attention += one.seconds.value;
    if (std::holds_alternative<MoeShape>(one.launch.shape)) shares.experts += one.seconds.value;
  }
  return shares;
}

Estimate wall_estimate(const StageEstimate& stage, const Stack& stack, const DispatchRequest& request,
                       std::span<const Launch> launches, std::span<const DeviceCall> calls) {
  const auto seconds = [&](double host, double device) {
    return dispatch(stack, launches, calls, stage.calls,
                    {.kind = request.kind, .host_factor = request.host_factor * host, .device_factor = device})
        .seconds;
  };
  const Estimate& kernels = stage.kernels;
  if (stack.posterior) {
    return with_posterior(stage.time.seconds, kernels.kind, *stack.posterior, shares_of(stage, stack, request.phase));
  }
  return {
      .value = stage.time.seconds,
      .low = seconds(stack.costs.host_low, stack.costs.kernels_low * kernels.low / kernels.value),
      .high = seconds(stack.costs.host_high, stack.costs.most_of_kernels(request.phase) * kernels.high / kernels.value),
      .kind = kernels.kind};
}

// All but its operators one by one and its memory.
StageEstimate times_of_launches(std::vector<Operator> calls, std::vector<TimedLaunch> launches,
                                const ErrorCorrelations& correlations, const Stack& stack,
                                const DispatchRequest& request) {
  StageEstimate result{.launches = std::move(launches), .calls = std::move(calls)};
  result.kernels = sum_of_launches(result.launches, correlations);
  const std::vector<Launch> plain = plain_launches(result.launches);
  const std::vector<DeviceCall> device = device_calls(result.launches);
  result.time = dispatch(stack, plain, device, result.calls, request);
  result.seconds = wall_estimate(result, stack, request, plain, device);
  return result;
}

LaunchTimer timer_of(const KernelPredictor& predictor, const Stack& stack, const ExecutionOptions& options,
                     int64_t stage) {
  return {.kernels = predictor,
          .stack = stack,
          .collectives =
              [&predictor, network = options.collectives](const StepCollective& call) {
                return step_collective_seconds(call, predictor.device(), network);
              },
          .stage = stage};
}

// By kind of link, in the order of first use.
void add_links(std::vector<LinkTraffic>& links, const StageEstimate& stage, int64_t number,
               const RankNetwork& network) {
  const MoeShape* experts = traveling_experts(stage.calls);
  for (const TimedLaunch& one : stage.launches) {
    if (!std::holds_alternative<CollectiveShape>(one.launch.shape)) continue;
    std::vector<LinkTraffic> parts = network.traffic(collective_of(one.launch, experts, number));
    if (parts.empty()) continue;
    parts.back().seconds = one.seconds.value;
    for (const LinkTraffic& part : parts) {
      auto found = std::find_if(links.begin(), links.end(), [&](const LinkTraffic& other) {
        return other.link == part.link && other.between_nodes == part.between_nodes;
      });
      if (found == links.end()) {
        found = links.insert(links.end(),
                             {.link = part.link, .between_nodes = part.between_nodes, .bandwidth = part.bandwidth});
      }
      found->bytes += part.bytes * static_cast<double>(one.launch.count);
      found->seconds += part.seconds;
    }
  }
}

// Operators in the order in which they run; memory is left to the caller.
StageEstimate estimate_calls(std::vector<Operator> operators, StepPhase phase, std::string_view family,
                             const KernelPredictor& predictor, const Stack& stack, Dispatch kind,
                             const ExecutionOptions& options, int64_t stage = 0) {
  std::vector<TimedLaunch> launches = timer_of(predictor, stack, options, stage).time(operators, phase, family);
  const auto stage_of = options.times_only ? times_of_launches : stage_of_launches;
  return stage_of(std::move(operators), std::move(launches), predictor.correlations(), stack,
                  {.kind = kind, .host_factor = options.host_factor, .phase = phase});
}

StageEstimate estimate_stage(const Model& model, const StepRequest& request, const ParallelPlan& plan, int64_t stage,
                             const KernelPredictor& predictor, const Stack& stack, Dispatch kind,
                             const ExecutionOptions& options, int64_t padded_batch) {
  StageEstimate result =
      estimate_calls(padded_operators(model, request, plan, stage, padded_batch > 0 ? padded_batch : request.batch),
                     request.phase, model.family, predictor, stack, kind, options, stage);
  if (options.times_only) return result;
  if (padded_batch > request.batch) {
    double real = 0;
    const std::vector<Operator> unpadded = stage_operators(model, request, plan, stage);
    for (const TimedLaunch& one :
         timer_of(predictor, stack, options, stage).time(unpadded, request.phase, model.family)) {
      real += one.seconds.value;
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

// Of a captured graph; 0 = not padded.
int64_t padded_batch_of(const StepRequest& request, const Stack& stack, Dispatch kind) {
  const bool captured = request.phase == StepPhase::decode && kind == Dispatch::graph;
  return captured ? stack.padded_tokens(request.batch).value_or(0) : 0;
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

std::vector<LinkTraffic> step_links(const StepEstimate& step, const RankNetwork& network) {
  std::vector<LinkTraffic> links;
  for (size_t i = 0; i < step.stages.size(); ++i) add_links(links, step.stages[i], static_cast<int64_t>(i), network);
  return links;
}

std::optional<double> memory_bandwidth_utilization(const StepEstimate& step, const Device& device) {
  if (!device.memory_bandwidth || step.stages.empty() || step.seconds.value <= 0) return std::nullopt;
  if (device.computing_memory) return std::nullopt;  // reads more than leaves it
  Bytes read;                                        // by one device of each stage
  for (const StageEstimate& stage : step.stages) {
    for (const TimedLaunch& timed : stage.launches) read = read + cold_bytes(timed.launch.shape, timed.work);
  }
  const Seconds least = read / device.memory_bandwidth->value;
  return least.value() / step.seconds.value / static_cast<double>(step.stages.size());
}

StageEstimate stage_of_launches(std::vector<Operator> calls, std::vector<TimedLaunch> launches,
                                const ErrorCorrelations& correlations, const Stack& stack,
                                const DispatchRequest& request) {
  StageEstimate result = times_of_launches(std::move(calls), std::move(launches), correlations, stack, request);
  result.operators = by_operator(result.calls, result.launches);
  return result;
}

namespace {
Estimate seconds_of_all(std::span<const StageEstimate> stages) {
  std::vector<Estimate> seconds;
  for (const StageEstimate& stage : stages) seconds.push_back(stage.seconds);
  return sum_of_correlated(seconds);
}
}  // namespace

void complete_step(StepEstimate& step, const Model& model, const Device& device) {
  double fullest = 0;
  for (const StageEstimate& stage : step.stages) fullest = std::max(fullest, stage.memory.total().value());
  step.seconds = seconds_of_all(step.stages);
  step.model_flops = model_flops(model, step.request) * passes(step.request);
  step.tokens = tokens_of(step.request) * static_cast<double>(step.plan.data);

  const auto replica = static_cast<double>(step.plan.tensor * step.plan.pipeline * step.plan.context);
  step.devices = replica * static_cast<double>(step.plan.data);
  if (const auto peak = device.peak_or_fallback(facts(model.scheme).math)) {
    step.model_flops_utilization = step.model_flops / (*peak * Seconds(step.seconds.value)) / replica;
  }
  if (device.memory || device.allocatable_memory) {
    step.device_memory = Bytes(allocatable_bytes(device).value);
    step.fits_in_memory = fullest <= step.device_memory.value();
  }
}

Estimate estimate_head(const Model& model, const StepRequest& request, const ParallelPlan& plan,
                       const KernelPredictor& predictor, const Stack& stack, const ExecutionOptions& options) {
  const auto tokens = static_cast<int64_t>(tokens_of(request));
  const Dispatch kind = options.dispatch.value_or(stack.dispatch_of(request.phase, tokens));
  const int64_t padded = padded_batch_of(request, stack, kind);
  std::vector<TimedLaunch> launches;
  for (int64_t stage = 0; stage < plan.pipeline; ++stage) {
    std::vector<TimedLaunch> own =
        timer_of(predictor, stack, options, stage)
            .time(padded_operators(model, request, plan, stage, padded > 0 ? padded : request.batch), request.phase,
                  model.family, StepPart::head);
    launches.insert(launches.end(), std::make_move_iterator(own.begin()), std::make_move_iterator(own.end()));
  }
  return sum_of_launches(launches, predictor.correlations());
}

StepEstimate estimate_step(const Model& model, const StepRequest& request, const ParallelPlan& plan,
                           const KernelPredictor& predictor, const Stack& stack, const ExecutionOptions& options) {
  if (!stack.runs(request.phase)) {
    throw InputError({.source = fmt::format("stack {}", stack.name),
                      .path = "dispatch",
                      .value = std::string(step_phase_name(request.phase)),
                      .expected = "a phase that this software supports; hf-eager and fused support all"});
  }
  const auto tokens = static_cast<int64_t>(tokens_of(request));
  const Dispatch kind = options.dispatch.value_or(stack.dispatch_of(request.phase, tokens));
  StepEstimate result{.request = request, .plan = plan, .stack = stack.name, .dispatch = kind};
  result.padded_batch = padded_batch_of(request, stack, kind);
  const std::optional<ComputingMemory>& memory = predictor.device().computing_memory;
  const bool works_beside =
      options.beside_memory && memory && memory->beside && request.phase == StepPhase::decode && request.batch > 1;
  const bool cuts = options.two_batch_overlap || works_beside;
  const std::optional<StepRequest> half = cuts ? half_of(request) : std::nullopt;
  for (int64_t stage = 0; stage < plan.pipeline; ++stage) {
    StageEstimate whole =
        estimate_stage(model, request, plan, stage, predictor, stack, kind, options, result.padded_batch);
    if (half) {
      const StageEstimate part =
          estimate_stage(model, *half, plan, stage, predictor, stack, kind, options, (result.padded_batch + 1) / 2);
      whole = options.two_batch_overlap ? in_two_batches(whole, part, stage, predictor.correlations(),
                                                         predictor.device(), options.collectives)
                                        : beside_memory(whole, part, predictor);
      result.two_batches |= whole.time.hidden_communication > 0;
    }
    result.stages.push_back(std::move(whole));
  }
  if (options.times_only) {
    result.seconds = seconds_of_all(result.stages);
  } else {
    complete_step(result, model, predictor.device());
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
