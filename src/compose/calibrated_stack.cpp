#include "compose/calibrated_stack.h"

#include <algorithm>
#include <cmath>

#include "base/normal_distribution.h"
#include "base/portable_math.h"

namespace foretoken {

Stack calibrated(Stack stack, const ConstantPosterior& posterior) {
  const auto factor = [&](DeploymentConstant which) { return portable_exp(at(posterior.mean, which)); };
  StackCosts& costs = stack.costs;
  costs.step_host = costs.step_host * factor(DeploymentConstant::host);
  const double level = factor(DeploymentConstant::level), prompt = factor(DeploymentConstant::prompt);
  for (const StepPhase phase : {StepPhase::prefill, StepPhase::decode, StepPhase::mixed}) {
    costs.kernel_factor[phase] = stack.kernel_factor(phase) * level * (phase == StepPhase::decode ? 1 : prompt);
  }
  costs.attention_factor *= factor(DeploymentConstant::attention);
  costs.expert_factor *= factor(DeploymentConstant::experts);
  costs.collective_factor *= factor(DeploymentConstant::collectives);
  costs.front.latency = costs.front.latency * factor(DeploymentConstant::front);
  costs.front.latency_sd = posterior.sd(DeploymentConstant::front);
  stack.posterior = posterior;
  return stack;
}

double visible_host(const Stack& stack, double seconds, double stall) {
  const double host = stack.costs.step_host.value();
  if (!stack.asynchronous) return std::min(seconds, host);
  return stall > 0 ? std::min(seconds, host) : 0;
}

Estimate with_posterior(double seconds, Confidence kind, const ConstantPosterior& posterior, const StepShares& shares) {
  if (seconds <= 0) return {.value = seconds, .low = seconds, .high = seconds, .kind = kind};
  const bool prompts = shares.phase != StepPhase::decode;
  ConstantVector gradient = {};  // of the logarithm
  at(gradient, DeploymentConstant::host) = shares.host / seconds;
  at(gradient, DeploymentConstant::level) = shares.kernels / seconds;
  at(gradient, DeploymentConstant::prompt) = prompts ? shares.kernels / seconds : 0;
  at(gradient, DeploymentConstant::attention) = shares.attention / seconds;
  at(gradient, DeploymentConstant::experts) = shares.experts / seconds;
  at(gradient, DeploymentConstant::collectives) = shares.collectives / seconds;
  const double own_sd = prompts ? posterior.prompt_sd : posterior.step_sd;
  double variance = own_sd * own_sd;
  for (size_t i = 0; i < deployment_constants; ++i) {
    for (size_t j = 0; j < deployment_constants; ++j) {
      variance += gradient[i] * gradient[j] * posterior.covariance[i][j];
    }
  }
  const double half = normal_half_width_90 * std::sqrt(std::max(0.0, variance));
  return {.value = seconds, .low = seconds * portable_exp(-half), .high = seconds * portable_exp(half), .kind = kind};
}

}  // namespace foretoken
