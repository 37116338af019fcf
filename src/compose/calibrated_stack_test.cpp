#include "compose/calibrated_stack.h"

#include <cmath>

#include <gtest/gtest.h>

#include "compose/step_spec.h"
#include "library/library.h"

namespace foretoken::calibrated_stack_test {

Library shipped() {
  return Library(FORETOKEN_SOURCE_DIR "/data");
}

StepPrediction decode(const Library& library, const std::string& stack, int64_t tensor) {
  return predict_step(library, {.model = {.model = "Llama-3.1-8B"},
                                .device = "h100_sxm",
                                .request = {.phase = StepPhase::decode, .batch = 32, .context_len = 2048},
                                .plan = {.tensor = tensor},
                                .stack = stack});
}

Library with_constant(DeploymentConstant constant, double log_factor) {
  CalibratedDeployment deployment{.engine = "vllm", .stack = "vllm-0.11", .device = "h100_sxm"};
  deployment.others = prior_of_constants();
  at(deployment.others.mean, constant) = log_factor;
  return shipped().with_deployment(deployment);
}

TEST(CalibratedStack, each_constant_multiplies_its_part_of_a_step) {
  const Library library = shipped();
  const StepPrediction before = decode(library, "vllm-0.11", 2);
  const DispatchTime& parts = before.step.stages[0].time;
  double attention = 0;
  for (const TimedLaunch& one : before.step.stages[0].launches) {
    if (is_attention(one.launch.shape)) attention += one.seconds.value;
  }
  ASSERT_GT(attention, 0);
  const double growth = std::exp(0.1) - 1;
  const auto longer_by = [&](DeploymentConstant constant) {
    return decode(with_constant(constant, 0.1), "vllm-0.11", 2).step.seconds.value - before.step.seconds.value;
  };
  EXPECT_NEAR(longer_by(DeploymentConstant::host), growth * before.stack.costs.step_host.value(), 1e-9);
  EXPECT_NEAR(longer_by(DeploymentConstant::collectives), growth * parts.communication, 1e-9);
  EXPECT_NEAR(longer_by(DeploymentConstant::attention), growth * attention, 1e-9);
  EXPECT_NEAR(longer_by(DeploymentConstant::level) / (growth * parts.kernels), 1, 0.1) << "gaps hold some of it";
  EXPECT_EQ(longer_by(DeploymentConstant::prompt), 0) << "a decode has no prompts";
  EXPECT_EQ(longer_by(DeploymentConstant::front), 0);
}

TEST(CalibratedStack, a_stack_of_another_engine_stays_as_it_is) {
  const Library calibrated = with_constant(DeploymentConstant::level, 0.1), library = shipped();
  EXPECT_EQ(decode(calibrated, "sglang", 1).step.seconds.value, decode(library, "sglang", 1).step.seconds.value);
  EXPECT_GT(decode(calibrated, "vllm", 1).step.seconds.value, decode(library, "vllm", 1).step.seconds.value);
}

TEST(CalibratedStack, intervals_follow_what_is_known) {
  ConstantPosterior posterior{.step_sd = 0.02, .prompt_sd = 0.05};
  const StepShares half_host{.phase = StepPhase::decode, .host = 0.005, .kernels = 0.005};
  const Estimate sure = with_posterior(0.01, Confidence::measured, posterior, half_host);
  EXPECT_NEAR(std::log(sure.high / 0.01), 1.645 * 0.02, 1e-12);
  EXPECT_NEAR(std::log(0.01 / sure.low), 1.645 * 0.02, 1e-12);
  // Errors of host and level that make up for each other do not show where both weigh the same.
  posterior.covariance[0][0] = posterior.covariance[1][1] = 0.04;
  posterior.covariance[0][1] = posterior.covariance[1][0] = -0.04;
  EXPECT_NEAR(with_posterior(0.01, Confidence::measured, posterior, half_host).high, sure.high, 1e-12);
  const StepShares kernels{.phase = StepPhase::decode, .kernels = 0.01};
  EXPECT_NEAR(std::log(with_posterior(0.01, Confidence::measured, posterior, kernels).high / 0.01),
              1.645 * std::hypot(0.2, 0.02), 1e-12);
}

}  // namespace foretoken::calibrated_stack_test
