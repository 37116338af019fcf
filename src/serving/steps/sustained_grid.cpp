#include "serving/steps/sustained_grid.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "compose/step_estimate.h"
#include "compose/sustained_step.h"
#include "serving/steps/equal_step.h"

namespace foretoken {

SustainedGrid::SustainedGrid(ComposedStepsConfig config, Spacing spacing)
    : config_(std::move(config)), spacing_(spacing) {
  ensure(config_.models.power.has_value(), "what a board draws is known");
}

Estimate SustainedGrid::slowdown(const Step& step) {
  return slowdowns_.at(0, {step.prompt_tokens, step.decodes, step.mean_context},
                       [&](const Node& node) { return held_at(node).slowdown; });
}

Estimate SustainedGrid::watts_above_idle(const Step& step) {
  const std::array<double, 3> at{step.prompt_tokens, step.decodes, step.mean_context};
  const auto watts = [&](const Node& node) { return held_at(node).watts_above_idle; };
  return spacing_ == Spacing::coarse ? coarse_watts_.at(0, at, watts) : watts_.at(0, at, watts);
}

const SustainedGrid::Held& SustainedGrid::held_at(const Node& node) {
  const auto found = held_.find(node);
  return found != held_.end() ? found->second : held_.emplace(node, compute(node)).first->second;
}

SustainedGrid::Held SustainedGrid::compute(const Node& node) const {
  if (node[0] + node[1] == 0) return {.slowdown = exactly(1), .watts_above_idle = exactly(0)};
  const StepRequest request = equal_step(node, config_.kv_dtype);
  const StepEstimate step = estimate_step(config_.model, request, config_.plan, config_.models.kernels, config_.stack,
                                          {.times_only = true, .collectives = config_.models.collectives.get()});
  const SustainedStep held = sustained_step(step, *config_.models.power, config_.models.kernels.device());
  // Of the board's limit none to twice as much is met; a cap on the clock always is.
  const Estimate& slowdown = held.power.slowdown;
  const double capped = held.power.slowdown_of_clock_cap, doubt = capped > 1 ? slowdown.value - slowdown.low : 0;
  return {
      .slowdown = {.value = slowdown.value,
                   .low = std::max(1.0, capped - doubt),
                   .high = 2 * slowdown.value - capped + doubt,
                   .kind = Confidence::extrapolated},
      .watts_above_idle = held.above_idle,
  };
}

}  // namespace foretoken
