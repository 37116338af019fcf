#include "library/deployment.h"

#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"

namespace foretoken::deployment_test {

using testing::HasSubstr;

CalibratedDeployment measured() {
  ConstantPosterior own = prior_of_constants(), others = prior_of_constants();
  at(own.mean, DeploymentConstant::host) = -0.25;
  at(own.mean, DeploymentConstant::front) = 0.5;
  own.covariance[0][1] = own.covariance[1][0] = -0.01;
  own.step_sd = 0.02;
  at(others.mean, DeploymentConstant::host) = -0.25;
  return {.name = "cluster",
          .engine = "vllm",
          .stack = "vllm-0.14",
          .device = "h100_sxm",
          .engines = {{.model = "Llama-3.1-8B", .plan = {.tensor = 2}, .constants = own}},
          .others = others,
          .rows = {{.run = "a", .metric = "e2e_ms", .measured = 10, .before = 9, .after = 10.1, .left_out = 9.9},
                   {.run = "b", .metric = "ttft_ms", .measured = 5, .before = 4, .after = 5, .used = false}},
          .notes = {"a note"}};
}

std::string complaint(const Json& json) {
  try {
    parse_deployment(json.dump(), "file.json");
  } catch (const InputError& error) {
    return error.what();
  }
  return "none";
}

TEST(Deployment, reads_back_as_it_was_written) {
  const Json json = deployment_json(measured());
  const CalibratedDeployment read = parse_deployment(json.dump(), "file.json");
  EXPECT_EQ(deployment_json(read).dump(), json.dump());
  EXPECT_DOUBLE_EQ(at(read.engines[0].constants.mean, DeploymentConstant::host), -0.25);
  EXPECT_EQ(read.rows[0].left_out, 9.9);
  EXPECT_FALSE(read.rows[1].used);
}

TEST(Deployment, speaks_for_its_engine_and_gpu_and_less_surely_for_other_models) {
  const CalibratedDeployment deployment = measured();
  const ParallelPlan two{.tensor = 2}, four{.tensor = 4};
  EXPECT_DOUBLE_EQ(
      at(deployment.constants_of("vllm", "h100_sxm", "Llama-3.1-8B", two)->mean, DeploymentConstant::front), 0.5);
  EXPECT_DOUBLE_EQ(
      at(deployment.constants_of("vllm", "h100_sxm", "Llama-3.1-8B", four)->mean, DeploymentConstant::front), 0)
      << "another layout has another front";
  EXPECT_FALSE(deployment.constants_of("sglang", "h100_sxm", "Llama-3.1-8B", two));
  EXPECT_FALSE(deployment.constants_of("vllm", "a100_sxm", "Llama-3.1-8B", two));
  EXPECT_TRUE(deployment.has_measured("Llama-3.1-8B", two));
  EXPECT_FALSE(deployment.has_measured("Llama-3.1-8B", four));
}

TEST(Deployment, that_is_wrong_is_refused_with_its_path) {
  const Json good = deployment_json(measured());
  EXPECT_EQ(complaint(good), "none");
  Json later = good, unknown = good, broken = good;
  later.set("format", 2);
  EXPECT_THAT(complaint(later), HasSubstr("later version"));
  unknown.set("devise", "x");
  EXPECT_THAT(complaint(unknown), HasSubstr("did you mean device?"));
  CalibratedDeployment wild = measured();
  wild.others.covariance[0][0] = -1;
  EXPECT_THAT(complaint(deployment_json(wild)), HasSubstr("other_models.covariance"));
  wild = measured();
  wild.others.covariance[0][1] = wild.others.covariance[1][0] = 10;
  EXPECT_THAT(complaint(deployment_json(wild)), HasSubstr("a covariance matrix"));
  wild = measured();
  at(wild.engines[0].constants.mean, DeploymentConstant::level) = 3;
  EXPECT_THAT(complaint(deployment_json(wild)), HasSubstr("engines[0].posterior.constants.level.log"));
}

}  // namespace foretoken::deployment_test
