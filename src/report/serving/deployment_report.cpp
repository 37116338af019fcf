#include "report/serving/deployment_report.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/normal_distribution.h"
#include "base/portable_math.h"
#include "compose/calibrated_stack.h"
#include "report/parts/table.h"

namespace foretoken {
namespace {

const DeploymentConstantKind& kind_of_constant(DeploymentConstant constant) {
  return deployment_constant_kinds()[static_cast<size_t>(constant)];
}

std::string error_text(double predicted, double measured) {
  return measured > 0 && predicted > 0 ? fmt::format("{:+.1f}%", 100 * (predicted / measured - 1)) : "-";
}

std::string names_of_constants(const std::vector<DeploymentConstant>& constants) {
  std::vector<std::string_view> names;
  for (const DeploymentConstant one : constants) names.push_back(kind_of_constant(one).name);
  return fmt::format("{}", fmt::join(names, ", "));
}

std::string load_flags(const SuggestedLoad& load) {
  return fmt::format("{{max_concurrency}} {} {{random_input_len}} {} {{random_output_len}} {} {{num_prompts}} {}",
                     load.max_concurrency, load.input_len, load.output_len, load.num_prompts);
}

}  // namespace

std::string calibration_text(const Calibration& calibration) {
  const CalibratedDeployment& deployment = calibration.deployment;
  std::string text = fmt::format("{} on {}", deployment.engine, deployment.device);
  for (const CalibratedEngine& engine : deployment.engines) {
    text += fmt::format("\n\n{}, tensor {}, pipeline {}, data {}, expert {}\n", engine.model, engine.plan.tensor,
                        engine.plan.pipeline, engine.plan.data, engine.plan.expert);
    Table table({{"constant", Table::Align::left},
                 {"factor"},
                 {"90% interval"},
                 {"before"},
                 {"what it multiplies", Table::Align::left}});
    for (const DeploymentConstant constant : calibration.used) {
      const double mean = at(engine.constants.mean, constant),
                   half = normal_half_width_90 * engine.constants.sd(constant);
      const double prior = normal_half_width_90 * kind_of_constant(constant).prior_sd;
      table.add({std::string(kind_of_constant(constant).name), fmt::format("{:.3f}", portable_exp(mean)),
                 fmt::format("{:.2f} to {:.2f}", portable_exp(mean - half), portable_exp(mean + half)),
                 fmt::format("{:.2f} to {:.2f}", portable_exp(-prior), portable_exp(prior)),
                 std::string(kind_of_constant(constant).summary)});
    }
    text += table.text();
  }
  Table rows({{"run", Table::Align::left},
              {"metric", Table::Align::left},
              {"measured ms"},
              {"before"},
              {"after"},
              {"left out"}});
  bool saturated = false;
  for (const CalibrationRow& row : deployment.rows) {
    saturated = saturated || !row.used;
    rows.add({row.run, row.used ? row.metric : row.metric + " *", fmt::format("{:.1f}", row.measured),
              error_text(row.before, row.measured), error_text(row.after, row.measured),
              row.left_out ? error_text(*row.left_out, row.measured) : "-"});
  }
  text += "\n\nPrediction error before and after calibration, and with a calibration that leaves out that run:\n" +
          rows.text();
  if (saturated) text += "\n* not used: the prediction is saturated here, but the measured run was not\n";
  std::string told;
  if (!calibration.untold.empty()) {
    told += fmt::format("These runs cannot determine: {}. Their intervals stay those of the library.\n",
                        names_of_constants(calibration.untold));
  }
  for (const auto& [a, b] : calibration.together) {
    told += fmt::format("Only the combination of {} and {} is known: another run is needed to separate them.\n",
                        kind_of_constant(a).name, kind_of_constant(b).name);
  }
  for (const SuggestedLoad& load : calibration.next) {
    told +=
        fmt::format("{} {}\n  narrows {} most (standard deviation {:.2f} to {:.2f})\n",
                    &load == &calibration.next.front() ? "The most informative next run:" : "Then:", load_flags(load),
                    kind_of_constant(load.narrows).name, load.sd_before, load.sd_after);
  }
  return text + (told.empty() ? "" : "\n" + wrap_lines(told, page_width(), 2)) +
         fmt::format("\n{} simulations\n", calibration.simulations);
}

Json calibration_json(const Calibration& calibration) {
  Json json = deployment_json(calibration.deployment);
  const auto list = [](const std::vector<DeploymentConstant>& constants) {
    Json names = Json::array();
    for (const DeploymentConstant one : constants) names.push(kind_of_constant(one).name);
    return names;
  };
  Json together = Json::array(), next = Json::array();
  for (const auto& [a, b] : calibration.together) together.push(list({a, b}));
  for (const SuggestedLoad& load : calibration.next) {
    next.push(Json::object({{"max_concurrency", load.max_concurrency},
                            {"random_input_len", load.input_len},
                            {"random_output_len", load.output_len},
                            {"num_prompts", load.num_prompts},
                            {"information_nats", load.information},
                            {"narrows", kind_of_constant(load.narrows).name},
                            {"sd_before", load.sd_before},
                            {"sd_after", load.sd_after}}));
  }
  json.set("constants_fitted", list(calibration.used));
  json.set("cannot_tell", list(calibration.untold));
  json.set("known_together", std::move(together));
  json.set("next_loads", std::move(next));
  json.set("simulations", calibration.simulations);
  return json;
}

std::string run_check_failure(const RunCheck& check) {
  if (check.agrees()) return {};
  const auto worst = std::max_element(
      check.numbers.begin(), check.numbers.end(),
      [](const CheckedNumber& a, const CheckedNumber& b) { return std::abs(a.deviations) < std::abs(b.deviations); });
  return fmt::format(
      "The run drifts from the deployment: {} of {} is {:.1f} ms, predicted {:.1f} ms ({:.1f} to {:.1f}).",
      worst->metric, worst->name, worst->measured_ms, worst->predicted_ms.value, worst->predicted_ms.low,
      worst->predicted_ms.high);
}

std::string run_check_text(const RunCheck& check) {
  std::string text = check.agrees() ? fmt::format("{} agrees with the deployment.\n\n", check.run)
                                    : wrap_lines(run_check_failure(check) + "\n\n", page_width(), 2);
  Table table({{"run", Table::Align::left},
               {"metric", Table::Align::left},
               {"measured ms"},
               {"predicted ms"},
               {"90% interval"},
               {"error"},
               {"sd"},
               {"", Table::Align::left}});
  for (const CheckedNumber& one : check.numbers) {
    table.add({one.name, one.metric, fmt::format("{:.1f}", one.measured_ms),
               fmt::format("{:.1f}", one.predicted_ms.value),
               fmt::format("{:.1f} to {:.1f}", one.predicted_ms.low, one.predicted_ms.high),
               error_text(one.predicted_ms.value, one.measured_ms), fmt::format("{:+.1f}", one.deviations),
               one.agrees ? "" : "drifts"});
  }
  text += table.text();
  text += fmt::format("\nA value drifts if it is more than {:.1f} standard deviations off.\n", check.limit);
  if (!check.knows_engine) {
    text += "The deployment was calibrated on other models or layouts, so its intervals are wider here.\n";
  }
  return text;
}

Json run_check_json(const RunCheck& check) {
  Json numbers = Json::array();
  for (const CheckedNumber& one : check.numbers) {
    numbers.push(Json::object({{"name", one.name},
                               {"metric", one.metric},
                               {"measured_ms", one.measured_ms},
                               {"predicted_ms", one.predicted_ms.value},
                               {"low_ms", one.predicted_ms.low},
                               {"high_ms", one.predicted_ms.high},
                               {"deviations", one.deviations},
                               {"agrees", one.agrees}}));
  }
  return Json::object({{"run", check.run},
                       {"deployment", check.deployment},
                       {"agrees", check.agrees()},
                       {"limit", check.limit},
                       {"calibrated_on_this_engine", check.knows_engine},
                       {"numbers", std::move(numbers)}});
}

}  // namespace foretoken
