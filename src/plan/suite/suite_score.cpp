#include "plan/suite/suite_score.h"

#include <algorithm>
#include <cmath>
#include <map>

#include <fmt/format.h>

namespace foretoken {
namespace {

// Errors at which nothing is left of a score: half off is no prediction; kernels to models cost 5 to 15% in the tools
// of the field; three times the error on hardware never seen.
constexpr double worthless_error = 50, worthless_composition = 15, worthless_ratio = 3;
constexpr double most_install_commands = 10, slow_scenario_seconds = 3600;

double clipped(double score) {
  return std::clamp(score, 0.0, 100.0);
}

// 100 without an error, 0 at `worthless`.
double by_error(double error, double worthless) {
  return clipped(100 * (1 - error / worthless));
}

const SuiteAnswer* answer_to(const SuiteCard& card, std::span<const SuiteAnswer> answers) {
  for (const SuiteAnswer& answer : answers) {
    if (answer.id == card.id) return &answer;
  }
  return nullptr;
}

struct MeasuredAnswer {
  const SuiteCard* card;
  const SuiteAnswer* answer;
};

// Each size against the smallest of its row: predicted ratio over measured ratio.
std::optional<double> scaling_error(const std::vector<MeasuredAnswer>& scored) {
  std::map<std::string, std::vector<MeasuredAnswer>> families;
  for (const MeasuredAnswer& one : scored) {
    if (one.card->scaling) families[one.card->scaling->family].push_back(one);
  }
  std::vector<double> errors;
  for (auto& [name, members] : families) {
    std::sort(members.begin(), members.end(), [](const MeasuredAnswer& a, const MeasuredAnswer& b) {
      return a.card->scaling->size < b.card->scaling->size;
    });
    const MeasuredAnswer& first = members.front();
    for (size_t i = 1; i < members.size(); ++i) {
      const double predicted = members[i].answer->value / first.answer->value;
      const double measured = members[i].card->measured->value / first.card->measured->value;
      errors.push_back(100 * std::abs(predicted / measured - 1));
    }
  }
  if (errors.empty()) return std::nullopt;
  return mean(errors);
}

DimensionScore fidelity(const SuiteScore& score) {
  DimensionScore result{.name = "fidelity"};
  const ErrorSummary& errors = score.errors;
  if (errors.n == 0) {
    result.why = "no answer to a scenario with a published measurement";
    return result;
  }
  std::vector<double> parts = {by_error(errors.mape, worthless_error)};
  result.why = fmt::format("error {:.1f}% on {} measured scenarios", errors.mape, errors.n);
  if (errors.n > 1) {
    parts.push_back(clipped(100 * errors.spearman));
    result.why += fmt::format(", rank {:.2f}", errors.spearman);
  }
  // Intervals that hold too many are as wrong as those that hold too few.
  parts.push_back(clipped(100 - std::abs(errors.coverage90 - 90)));
  result.why += fmt::format(", {:.0f}% inside its 90% intervals", errors.coverage90);
  if (score.scaling_error) {
    parts.push_back(by_error(*score.scaling_error, worthless_error));
    result.why += fmt::format(", scaling {:.1f}% off", *score.scaling_error);
  }
  result.score = mean(parts);
  return result;
}

DimensionScore composition(const ToolFacts& facts) {
  DimensionScore result{.name = "composition"};
  if (!facts.kernel_mape || !facts.model_mape) {
    result.why = "needs kernel_mape and model_mape";
    return result;
  }
  result.score = by_error(std::max(0.0, *facts.model_mape - *facts.kernel_mape), worthless_composition);
  result.why = fmt::format("kernels {:.1f}% off, models made of them {:.1f}%", *facts.kernel_mape, *facts.model_mape);
  return result;
}

DimensionScore generalisation(const ToolFacts& facts) {
  DimensionScore result{.name = "generalisation"};
  if (!facts.seen_mape || !facts.unseen_mape) {
    result.why = "needs seen_mape and unseen_mape";
    return result;
  }
  // Half by the error itself, half by how much it grows.
  const double ratio = *facts.unseen_mape / std::max(*facts.seen_mape, 1.0);
  result.score = mean(std::vector<double>{by_error(*facts.unseen_mape, worthless_error),
                                          clipped(100 * (worthless_ratio * 2 - ratio) / (worthless_ratio * 2 - 1))});
  result.why =
      fmt::format("{:.1f}% off on hardware never seen, {:.1f}% on known", *facts.unseen_mape, *facts.seen_mape);
  return result;
}

DimensionScore deployment(const ToolFacts& facts) {
  DimensionScore result{.name = "deployment"};
  if (!facts.install_commands || !facts.seconds_per_scenario) {
    result.why = "needs install_commands and seconds_per_scenario";
    return result;
  }
  const double seconds = std::max(*facts.seconds_per_scenario, 1.0);
  const std::vector<double> parts = {clipped(100 * (1 - (*facts.install_commands - 1) / (most_install_commands - 1))),
                                     clipped(100 * (1 - std::log(seconds) / std::log(slow_scenario_seconds))),
                                     facts.needs_gpu ? 0.0 : 100.0, facts.needs_network ? 0.0 : 100.0};
  result.score = mean(parts);
  result.why =
      fmt::format("{:.0f} commands to install, {:.2g} s a scenario, {} GPU, {} network", *facts.install_commands,
                  *facts.seconds_per_scenario, facts.needs_gpu ? "a" : "no", facts.needs_network ? "a" : "no");
  return result;
}

DimensionScore extensibility(const SuiteScore& score, const ToolFacts& facts) {
  const double covered = 100 * static_cast<double>(score.answered) / static_cast<double>(score.scenarios);
  const int by_file = facts.device_by_file + facts.model_by_file + facts.technique_by_flag;
  return {.name = "extensibility",
          .score = mean(std::vector<double>{covered, 100.0 * by_file / 3}),
          .why = fmt::format("{} of {} scenarios; by data alone: {} of device, model, technique", score.answered,
                             score.scenarios, by_file)};
}

}  // namespace

ToolFacts read_tool_facts(const JsonView& document) {
  document.allow_only({"name", "source", "kernel_mape", "model_mape", "seen_mape", "unseen_mape", "install_commands",
                       "seconds_per_scenario", "needs_gpu", "needs_network", "device_by_file", "model_by_file",
                       "technique_by_flag"});
  const auto number = [&](std::string_view key) -> std::optional<double> {
    const auto found = document.find(key);
    return found ? std::optional(found->number({.least = 0, .most = 1e9})) : std::nullopt;
  };
  const auto truth = [&](std::string_view key, bool usual) {
    const auto found = document.find(key);
    return found ? found->boolean() : usual;
  };
  ToolFacts facts{.name = document.at("name").string(), .source = document.at("source").string()};
  facts.kernel_mape = number("kernel_mape");
  facts.model_mape = number("model_mape");
  facts.seen_mape = number("seen_mape");
  facts.unseen_mape = number("unseen_mape");
  facts.install_commands = number("install_commands");
  facts.seconds_per_scenario = number("seconds_per_scenario");
  facts.needs_gpu = truth("needs_gpu", facts.needs_gpu);
  facts.needs_network = truth("needs_network", facts.needs_network);
  facts.device_by_file = truth("device_by_file", facts.device_by_file);
  facts.model_by_file = truth("model_by_file", facts.model_by_file);
  facts.technique_by_flag = truth("technique_by_flag", facts.technique_by_flag);
  return facts;
}

SuiteScore score_answers(std::span<const SuiteCard> cards, std::span<const SuiteAnswer> answers,
                         const ToolFacts& facts) {
  SuiteScore score{.scenarios = cards.size()};
  std::vector<MeasuredAnswer> scored;
  std::vector<PredictedRow> rows;
  for (const SuiteCard& card : cards) {
    const SuiteAnswer* answer = answer_to(card, answers);
    const bool is_survey = card.group == "survey";
    score.survey_scenarios += is_survey ? 1 : 0;
    if (answer == nullptr) continue;
    ++score.answered;
    score.survey_answered += is_survey ? 1 : 0;
    if (!card.measured) continue;
    scored.push_back({&card, answer});
    rows.push_back({.measured = card.measured->value,
                    .predicted = answer->value,
                    .low = answer->low.value_or(answer->value),
                    .high = answer->high.value_or(answer->value)});
  }
  score.errors = summarize_errors(rows);
  score.scaling_error = scaling_error(scored);
  score.dimensions = {fidelity(score), composition(facts), generalisation(facts), deployment(facts),
                      extensibility(score, facts)};
  return score;
}

}  // namespace foretoken
