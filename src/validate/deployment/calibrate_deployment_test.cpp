#include "validate/deployment/calibrate_deployment.h"

#include <algorithm>
#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "base/simulated_time.h"
#include "compose/model_spec.h"
#include "library/library.h"
#include "validate/deployment/check_run.h"

namespace foretoken::calibrate_deployment_test {

// Runs "measured" on an engine whose constants are known.
class Calibrate : public testing::Test {
 protected:
  EngineSpec engine(int64_t tensor = 1) const {
    const Device device = library_.hardware().device("h100_sxm");
    EngineSpec spec{.model = open_model(library_, {.model = "Llama-3.1-8B"}, device, {.tensor = tensor}),
                    .device = device,
                    .plan = {.tensor = tensor},
                    .stack = "vllm-0.11"};
    spec.flags.max_model_len = 8192;
    spec.scheduling.async_scheduling = false;
    return spec;
  }

  RunCase measured(const std::string& name, const ConstantVector& truth, double rate, int64_t input,
                   int64_t tensor = 1) const {
    RunCase result{.run = {.name = name}, .engine = engine(tensor)};
    for (int64_t i = 0; i < 60; ++i) {
      result.run.requests.push_back({.arrival_s = static_cast<double>(i) / rate,
                                     .input_tokens = input + 7 * (i % 5),
                                     .output_tokens = 40 + 3 * (i % 4)});
    }
    ServingFacts facts = serving_facts(library_);
    auto real = std::make_shared<CalibratedDeployment>();
    real->engine = "vllm";
    real->device = "h100_sxm";
    real->others.mean = truth;
    facts.deployment = real;
    EngineBuilder builder(facts);
    const ReplayedRun run = simulate_run(builder, result, load_of(result.run));
    for (size_t i = 0; i < result.run.requests.size(); ++i) {
      result.run.requests[i].ttft_s = to_seconds(run.by_id[i].ttft()).value();
      result.run.requests[i].e2e_s = to_seconds(run.by_id[i].e2el()).value();
    }
    return result;
  }

  Library library_{FORETOKEN_SOURCE_DIR "/data"};
};

double median_error(const CalibratedDeployment& deployment, double CalibrationRow::*predicted) {
  std::vector<double> errors;
  for (const CalibrationRow& row : deployment.rows) {
    if (row.metric == "e2e_ms") errors.push_back(std::abs(row.*predicted / row.measured - 1));
  }
  std::nth_element(errors.begin(), errors.begin() + static_cast<int64_t>(errors.size() / 2), errors.end());
  return errors[errors.size() / 2];
}

TEST_F(Calibrate, finds_constants_that_were_changed_on_purpose) {
  ConstantVector truth = {};
  at(truth, DeploymentConstant::host) = std::log((1900.0 + 400) / 1900);
  at(truth, DeploymentConstant::level) = std::log(1.1);
  at(truth, DeploymentConstant::front) = 0.7;
  const CalibrationRequest request{
      .cases = {measured("few", truth, 2, 200), measured("many", truth, 20, 200), measured("long", truth, 4, 3000)},
      .facts = serving_facts(library_),
      .threads = 1};
  const Calibration calibration = calibrate_deployment(request);
  const ConstantPosterior& found = calibration.deployment.engines.at(0).constants;
  // Three independent constants lie together within this sum nine times of ten (chi-square).
  constexpr double most_apart = 6.25;
  double apart = 0;
  for (const DeploymentConstant constant :
       {DeploymentConstant::host, DeploymentConstant::level, DeploymentConstant::front}) {
    const double deviations = (at(found.mean, constant) - at(truth, constant)) / found.sd(constant);
    apart += deviations * deviations;
  }
  EXPECT_LT(apart, most_apart);
  EXPECT_GT(median_error(calibration.deployment, &CalibrationRow::before), 0.05);
  EXPECT_LT(median_error(calibration.deployment, &CalibrationRow::after), 0.015);
  for (const CalibrationRow& row : calibration.deployment.rows) {
    ASSERT_TRUE(row.left_out) << row.run;
    if (row.metric != "e2e_ms") continue;
    EXPECT_NEAR(*row.left_out / row.measured, 1, 0.04) << row.run;
  }
  EXPECT_FALSE(calibration.next.empty());

  // The same bytes on any number of threads.
  CalibrationRequest threaded = request;
  threaded.threads = 2;
  EXPECT_EQ(deployment_json(calibrate_deployment(threaded).deployment).dump(),
            deployment_json(calibration.deployment).dump());
}

TEST_F(Calibrate, tells_slow_links_from_slow_kernels_by_two_layouts) {
  ConstantVector truth = {};
  at(truth, DeploymentConstant::collectives) = std::log(2.0);
  const Calibration calibration =
      calibrate_deployment({.cases = {measured("tp1", truth, 8, 3000), measured("tp4", truth, 16, 3000, 4),
                                      measured("tp8", truth, 16, 3000, 8)},
                            .facts = serving_facts(library_),
                            .suggest = false,
                            .threads = 1});
  const ConstantPosterior& found = calibration.deployment.engines.at(2).constants;
  EXPECT_GT(at(found.mean, DeploymentConstant::collectives), 0.2);
  EXPECT_LT(std::abs(at(found.mean, DeploymentConstant::collectives) - std::log(2.0)),
            1.645 * found.sd(DeploymentConstant::collectives));
}

// Of such short prompts attention takes next to nothing.
TEST_F(Calibrate, says_what_a_run_cannot_tell) {
  const Calibration calibration = calibrate_deployment(
      {.cases = {measured("one", {}, 4, 20)}, .facts = serving_facts(library_), .suggest = false, .threads = 1});
  EXPECT_THAT(calibration.untold, testing::Contains(DeploymentConstant::attention));
  EXPECT_LT(std::abs(at(calibration.deployment.engines[0].constants.mean, DeploymentConstant::level)), 0.02)
      << "nothing to correct";
}

TEST_F(Calibrate, a_new_run_agrees_or_drifts) {
  ConstantVector truth = {};
  at(truth, DeploymentConstant::level) = 0.08;
  const Calibration calibration = calibrate_deployment(
      {.cases = {measured("first", truth, 4, 500)}, .facts = serving_facts(library_), .suggest = false, .threads = 1});
  ServingFacts facts = serving_facts(library_);
  facts.deployment = std::make_shared<const CalibratedDeployment>(calibration.deployment);
  EXPECT_TRUE(check_run_against(measured("same", truth, 6, 400), facts, 0.01).agrees());
  at(truth, DeploymentConstant::level) = 0.25;
  at(truth, DeploymentConstant::host) = 0.4;
  const RunCheck slower = check_run_against(measured("slower", truth, 6, 400), facts, 0.01);
  EXPECT_FALSE(slower.agrees());
  EXPECT_GT(slower.numbers.front().deviations, slower.limit);
  RunCase other = measured("other", truth, 6, 400);
  other.engine.device = library_.hardware().device("a100_sxm");
  EXPECT_THROW(check_run_against(other, facts, 0.01), InputError);
}

TEST_F(Calibrate, refuses_runs_of_two_devices_and_runs_that_say_nothing) {
  RunCase other = measured("other", {}, 6, 400);
  other.engine.device = library_.hardware().device("a100_sxm");
  EXPECT_THROW(calibrate_deployment({.cases = {measured("one", {}, 4, 200), other}, .facts = serving_facts(library_)}),
               InputError);
  RunCase failed = measured("failed", {}, 6, 400);
  for (MeasuredRequest& request : failed.run.requests) request.ttft_s = request.e2e_s = std::nullopt;
  EXPECT_THROW(calibrate_deployment({.cases = {failed}, .facts = serving_facts(library_)}), InputError);
}

}  // namespace foretoken::calibrate_deployment_test
