#include "validate/deployment/check_run.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "base/error.h"
#include "base/normal_distribution.h"
#include "base/portable_math.h"
#include "compose/calibrated_stack.h"
#include "serving/engine/engine_setup.h"

namespace foretoken {
namespace {

// Of one number of a run that is measured twice (log).
constexpr double repeat_sd = 0.01, repeat_ttft_sd = 0.03;

}  // namespace

bool RunCheck::agrees() const {
  return std::all_of(numbers.begin(), numbers.end(), [](const CheckedNumber& one) { return one.agrees; });
}

RunCheck check_run_against(const RunCase& measured, const ServingFacts& facts, double false_alarms) {
  ensure(facts.deployment != nullptr, "a run is checked against a deployment");
  const EngineSpec& engine = measured.engine;
  const CalibratedDeployment& deployment = *facts.deployment;
  const std::string family(engine_family(engine.flags.engine));
  if (!deployment.constants_of(family, engine.device.name, engine.model.name, engine.plan)) {
    throw InputError({.field = "deployment",
                      .value = fmt::format("of {} on {}", deployment.engine, deployment.device),
                      .expected = fmt::format("a deployment of {} on {}, as the run", family, engine.device.name)});
  }
  const std::vector<RunObservation> observations = observations_of(measured.run);
  if (observations.empty()) {
    throw InputError({.source = measured.run.name,
                      .value = "no stage without failed requests",
                      .expected = "end-to-end times, or times per token"});
  }
  const LoadSpec load = load_of(measured);
  EngineBuilder builder(facts);
  std::vector<std::vector<double>> at;  // value, low, high
  for (const StepBound bound : {StepBound::value, StepBound::low, StepBound::high}) {
    at.push_back(predicted(simulate_run(builder, measured, load, bound), measured.run, observations));
  }
  RunCheck check{.run = measured.run.name,
                 .deployment = deployment.name,
                 .numbers = {},
                 .limit = normal_quantile(1 - false_alarms / 2 / static_cast<double>(observations.size())),
                 .knows_engine = deployment.has_measured(engine.model.name, engine.plan)};
  for (size_t i = 0; i < observations.size(); ++i) {
    const RunObservation& one = observations[i];
    const double value = at[0][i], low = std::min({value, at[1][i], at[2][i]}),
                 high = std::max({value, at[1][i], at[2][i]});
    CheckedNumber number{.name = one.name,
                         .metric = std::string(run_metric_name(one.metric)),
                         .measured_ms = 1e3 * one.measured_s,
                         .predicted_ms = {1e3 * value, 1e3 * low, 1e3 * high}};
    if (value > 0) {
      const double error = portable_log(one.measured_s / value);
      const double reach = error > 0 ? portable_log(high / value) : portable_log(value / std::max(low, 1e-3 * value));
      const double noise = one.metric == RunMetric::ttft ? repeat_ttft_sd : repeat_sd;
      number.deviations = error / portable_hypot(reach / normal_half_width_90, noise);
      number.agrees = std::abs(number.deviations) <= check.limit;
    }
    check.numbers.push_back(std::move(number));
  }
  return check;
}

}  // namespace foretoken
