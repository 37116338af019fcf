#include "compose/timed_launch.h"

#include <algorithm>

#include "compose/expert_kernels.h"
#include "compose/linear_kernels.h"
#include "hardware/generation.h"

namespace foretoken {
namespace {

TimedLaunch time_launch(const Launch& launch, StepPhase phase, const KernelPredictor& predictor, const Stack& stack,
                        const CollectiveTimer& collectives, const MoeShape* experts, int64_t stage) {
  const auto count = static_cast<double>(launch.count);
  if (std::holds_alternative<CollectiveShape>(launch.shape)) {
    const Estimate seconds = collectives(collective_of(launch, experts, stage));
    return {.launch = launch,
            .kernel = std::nullopt,
            .seconds = scaled(seconds, count * stack.kernel_factor(phase, launch.shape)),
            .work = {}};
  }
  const auto* linear = std::get_if<GemmShape>(&launch.shape);
  const auto* expert_layer = std::get_if<MoeShape>(&launch.shape);
  const KernelEstimate kernel = linear != nullptr ? linear_estimate(*linear, launch.variant, predictor, stack)
                                : expert_layer != nullptr
                                    ? expert_estimate(*expert_layer, launch.variant, predictor, stack)
                                    : predictor.estimate(launch.shape, launch.variant);
  return {.launch = launch,
          .kernel = kernel,
          .seconds = scaled(kernel.seconds, count * stack.kernel_factor(phase, launch.shape)),
          .work = scaled(kernel.work, count)};
}

// Shared experts on a stream beside the routed ones: what is left of their time is the memory's, which both share, and
// what the routed ones are too short to hide.
void move_to_side_stream(std::vector<TimedLaunch>& launches, int64_t most_tokens, const Device& device) {
  const auto is_shared = [](const TimedLaunch& one) { return one.launch.name.starts_with("shared_"); };
  double shared = 0, memory = 0, routed = 0;
  for (const TimedLaunch& one : launches) {
    const auto* experts = std::get_if<MoeShape>(&one.launch.shape);
    if (experts != nullptr && experts->tokens > most_tokens) return;
    if (experts != nullptr) routed += one.seconds.value;
    if (!is_shared(one)) continue;
    shared += one.seconds.value;
    memory += std::min(one.seconds.value, (one.work.bytes() / device.memory_bandwidth->value).value());
  }
  if (routed == 0 || shared == 0) return;
  const double visible = memory + std::max(0.0, shared - memory - routed);
  for (TimedLaunch& one : launches) {
    if (is_shared(one)) one.seconds = scaled(one.seconds, visible / shared);
  }
}

}  // namespace

StepCollective collective_of(const Launch& launch, const MoeShape* experts, int64_t stage) {
  return {
      .shape = std::get<CollectiveShape>(launch.shape), .kernel = launch.variant, .experts = experts, .stage = stage};
}

Work scaled(Work work, double count) {
  work.flops = work.flops * count;
  work.weights_read = work.weights_read * count;
  work.activations_read = work.activations_read * count;
  work.written = work.written * count;
  return work;
}

std::vector<TimedLaunch> LaunchTimer::time(const std::vector<Operator>& operators, StepPhase phase,
                                           std::string_view model_family, std::optional<StepPart> part) const {
  std::vector<TimedLaunch> launches;
  const MoeShape* experts = traveling_experts(operators);
  const LoweredStep step{
      .phase = phase, .model = model_family, .generation = kernel_generation(kernels.device()).title};
  for (const Launch& launch : lower(stack, operators, step)) {
    if (part && operators[launch.call].part != *part) continue;
    launches.push_back(time_launch(launch, phase, kernels, stack, collectives, experts, stage));
  }
  if (stack.side_stream_tokens > 0) move_to_side_stream(launches, stack.side_stream_tokens, kernels.device());
  return launches;
}

Estimate sum_of_launches(std::span<const TimedLaunch> launches, const ErrorCorrelations& correlations) {
  KernelSum sum(correlations);
  for (const TimedLaunch& one : launches) sum.add(one.seconds, error_form(one.launch.shape, one.launch.variant));
  return sum.total();
}

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

}  // namespace foretoken
