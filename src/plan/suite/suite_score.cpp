#include "plan/suite/suite_score.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "base/portable_math.h"

namespace foretoken {
namespace {

constexpr double fidelity_weight = 40, composition_weight = 20, generalization_weight = 20, deployment_weight = 10,
                 extensibility_weight = 10;
// Errors at which nothing is left of a score: half off is no prediction, three times or a third is a worst case; the
// tools of the field lose 5 to 15% from kernels to models; six times the error on what was never seen.
constexpr double worthless_error = 50, worthless_maximum = 200, worthless_composition = 15, worthless_growth = 6;
constexpr double most_install_commands = 10;
constexpr double slow_scenario_seconds = 3600, slow_first_seconds = 24 * 3600;
constexpr size_t least_ranked = 3;

double clipped(double score) {
  return std::clamp(score, 0.0, 100.0);
}

// 100 without an error, 0 at `worthless`.
double by_error(double error, double worthless) {
  return clipped(100 * (1 - error / worthless));
}

// 100 up to a second, 0 at `slow`, even by factors between.
double by_duration(double seconds, double slow) {
  return clipped(100 * (1 - portable_log(std::max(seconds, 1.0)) / portable_log(slow)));
}

// An answer beside what was measured.
struct ScoredCase {
  const SuiteAnswer* answer = nullptr;
  SuiteLevel level = SuiteLevel::system;
  std::string group;
  std::optional<double> size;
  double measured = 0;

  double error() const { return suite_error(answer->value, measured); }
};

std::optional<ScoredCase> scored_case(std::span<const SuiteCard> cards, const SuiteAnswer& answer) {
  const auto card = std::find_if(cards.begin(), cards.end(), [&](const SuiteCard& one) { return one.id == answer.id; });
  if (card == cards.end()) {
    if (!answer.measured) return std::nullopt;
    return ScoredCase{.answer = &answer,
                      .level = answer.level,
                      .group = answer.group,
                      .size = answer.size,
                      .measured = *answer.measured};
  }
  if (!card->measured) return std::nullopt;
  ScoredCase scored{.answer = &answer, .level = card->level, .measured = card->measured->value};
  scored.group = card->scaling ? card->scaling->family : fmt::format("{}, {}", card->metric, card->unit);
  if (card->scaling) scored.size = card->scaling->size;
  return scored;
}

std::vector<ScoredCase> scored_cases(std::span<const SuiteCard> cards, std::span<const SuiteAnswer> answers) {
  std::vector<ScoredCase> scored;
  for (const SuiteAnswer& answer : answers) {
    if (auto one = scored_case(cards, answer)) scored.push_back(std::move(*one));
  }
  return scored;
}

ErrorSummary errors_of(const std::vector<ScoredCase>& scored) {
  std::vector<PredictedRow> rows;
  for (const ScoredCase& one : scored) {
    rows.push_back({.measured = one.measured,
                    .predicted = one.answer->value,
                    .low = one.answer->low.value_or(one.answer->value),
                    .high = one.answer->high.value_or(one.answer->value)});
  }
  return summarize_errors(rows);
}

template <class Condition>
std::vector<ScoredCase> those(const std::vector<ScoredCase>& scored, const Condition& condition) {
  std::vector<ScoredCase> chosen;
  std::copy_if(scored.begin(), scored.end(), std::back_inserter(chosen), condition);
  return chosen;
}

std::map<std::string, std::vector<ScoredCase>> by_group(const std::vector<ScoredCase>& scored) {
  std::map<std::string, std::vector<ScoredCase>> groups;
  for (const ScoredCase& one : scored) groups[one.group].push_back(one);
  return groups;
}

// Values of different units have no common rank, so groups are ranked one by one.
std::optional<double> rank_correlation(const std::vector<ScoredCase>& scored) {
  std::vector<double> ranks;
  for (const auto& [name, members] : by_group(scored)) {
    if (members.size() >= least_ranked) ranks.push_back(errors_of(members).spearman);
  }
  return ranks.empty() ? std::nullopt : std::optional(mean(ranks));
}

// How far ratios inside a row of sizes are off: predicted over measured of each size against its geometric mean over
// the row, so that a common factor is no error and no single size is the reference.
std::optional<double> scaling_error(const std::vector<ScoredCase>& scored) {
  std::vector<double> errors;
  for (const auto& [name, members] :
       by_group(those(scored, [](const ScoredCase& one) { return one.size.has_value(); }))) {
    if (members.size() < 2) continue;
    std::vector<double> logs;
    for (const ScoredCase& one : members) logs.push_back(portable_log(one.answer->value / one.measured));
    const double common = mean(logs);
    for (const double one : logs) errors.push_back(100 * std::abs(portable_exp(one - common) - 1));
  }
  return errors.empty() ? std::nullopt : std::optional(mean(errors));
}

// The error of a whole is that of its parts together plus that of what lies between them.
std::optional<GapAttribution> attribution_of(const std::vector<ScoredCase>& scored) {
  std::map<std::string_view, double> part_errors;  // predicted - measured, of all parts of a case
  for (const ScoredCase& one : scored) {
    if (!one.answer->part_of.empty()) part_errors[one.answer->part_of] += one.answer->value - one.measured;
  }
  std::vector<double> total, parts, rest;
  for (const ScoredCase& one : scored) {
    const auto found = part_errors.find(one.answer->id);
    if (found == part_errors.end()) continue;
    const double of_parts = 100 * found->second / one.measured;
    total.push_back(std::abs(one.error()));
    parts.push_back(std::abs(of_parts));
    rest.push_back(std::abs(one.error() - of_parts));
  }
  if (total.empty()) return std::nullopt;
  return GapAttribution{
      .cases = total.size(), .total_error = mean(total), .from_parts = mean(parts), .from_composition = mean(rest)};
}

std::map<Withheld, WithheldErrors> withheld_errors(const std::vector<ScoredCase>& scored) {
  std::map<Withheld, WithheldErrors> result;
  for (const Withheld kind : all_withheld) {
    const auto holds = [&](const ScoredCase& one) {
      return std::find(one.answer->withheld.begin(), one.answer->withheld.end(), kind) != one.answer->withheld.end();
    };
    const std::vector<ScoredCase> hidden = those(scored, holds);
    if (hidden.empty()) continue;
    const std::vector<ScoredCase> seen = those(scored, [&](const ScoredCase& one) {
      return one.answer->withheld.empty() && std::any_of(hidden.begin(), hidden.end(), [&](const ScoredCase& other) {
               return other.level == one.level;
             });
    });
    WithheldErrors& errors = result[kind];
    errors.errors = errors_of(hidden);
    if (!seen.empty()) errors.seen_mape = errors_of(seen).mape;
  }
  return result;
}

void fill_errors(SuiteScore& score, const std::vector<ScoredCase>& scored) {
  score.measured_cases = scored.size();
  std::vector<double> level_mapes;
  for (const SuiteLevel level : {SuiteLevel::kernel, SuiteLevel::model, SuiteLevel::system}) {
    const std::vector<ScoredCase> members = those(scored, [&](const ScoredCase& one) { return one.level == level; });
    if (members.empty()) continue;
    LevelErrors& errors = score.levels[level];
    errors.errors = errors_of(members);
    for (const ScoredCase& one : members) errors.maximum = std::max(errors.maximum, std::abs(one.error()));
    score.maximum_error = std::max(score.maximum_error.value_or(0), errors.maximum);
    level_mapes.push_back(errors.errors.mape);
  }
  if (level_mapes.empty()) return;
  score.mape = mean(level_mapes);
  score.case_mape = errors_of(scored).mape;
  score.rank = rank_correlation(scored);
  const std::vector<ScoredCase> stated =
      those(scored, [](const ScoredCase& one) { return one.answer->low && one.answer->high; });
  if (!stated.empty()) score.coverage90 = errors_of(stated).coverage90;
  score.scaling_error = scaling_error(scored);
  score.attribution = attribution_of(scored);
  const auto gap = [&](SuiteLevel below, SuiteLevel above) -> std::optional<double> {
    if (!score.levels.contains(below) || !score.levels.contains(above)) return std::nullopt;
    return std::max(0.0, score.levels[above].errors.mape - score.levels[below].errors.mape);
  };
  score.model_gap = gap(SuiteLevel::kernel, SuiteLevel::model);
  if (score.attribution) score.model_gap = score.attribution->from_composition;
  score.system_gap =
      gap(score.levels.contains(SuiteLevel::model) ? SuiteLevel::model : SuiteLevel::kernel, SuiteLevel::system);
  score.withheld = withheld_errors(scored);
}

DimensionScore fidelity(const SuiteScore& score) {
  DimensionScore result{.name = "fidelity", .weight = fidelity_weight};
  if (!score.mape) {
    result.why = "no answer to a case that somebody measured";
    return result;
  }
  std::vector<double> parts = {by_error(*score.mape, worthless_error),
                               by_error(*score.maximum_error, worthless_maximum)};
  result.why = fmt::format("error {:.1f}% mean{}, {:.0f}% at most, over {} measured cases", *score.mape,
                           score.levels.size() > 1 ? " of the levels" : "", *score.maximum_error, score.measured_cases);
  if (score.rank) {
    parts.push_back(clipped(100 * *score.rank));
    result.why += fmt::format("; rank {:.2f}", *score.rank);
  }
  // Intervals that hold too many are as wrong as those that hold too few.
  parts.push_back(score.coverage90 ? clipped(100 - std::abs(*score.coverage90 - 90)) : 0);
  result.why += score.coverage90 ? fmt::format("; {:.0f}% inside its 90% intervals", *score.coverage90)
                                 : std::string("; states no intervals");
  if (score.scaling_error) {
    parts.push_back(by_error(*score.scaling_error, worthless_error));
    result.why += fmt::format("; scaling {:.1f}% off", *score.scaling_error);
  }
  result.score = mean(parts);
  return result;
}

// What is composed of wrong kernels is not composed well, even where errors cancel: the error of the lowest level
// bounds the score, and what composing adds lowers it.
DimensionScore composition(const SuiteScore& score) {
  DimensionScore result{.name = "composition", .weight = composition_weight};
  if (!score.model_gap && !score.system_gap) {
    result.why = "needs measured cases of at least two of kernel, model and system";
    return result;
  }
  const auto& [lowest, base] = *score.levels.begin();
  std::vector<double> steps;
  result.why = fmt::format("{} level {:.1f}% off", suite_level_name(lowest), base.errors.mape);
  const auto add = [&](const char* name, const std::optional<double>& gap) {
    if (!gap) return;
    steps.push_back(by_error(*gap, worthless_composition));
    result.why += fmt::format("; {} +{:.1f}%", name, *gap);
  };
  add("kernels to models", score.model_gap);
  add("models to systems", score.system_gap);
  if (score.attribution) {
    result.why +=
        fmt::format(" ({} composed cases {:.1f}% off: parts {:.1f}%, composition {:.1f}%)", score.attribution->cases,
                    score.attribution->total_error, score.attribution->from_parts, score.attribution->from_composition);
  }
  result.score = by_error(base.errors.mape, worthless_error) * mean(steps) / 100;
  return result;
}

DimensionScore generalization(const SuiteScore& score) {
  DimensionScore result{.name = "generalization", .weight = generalization_weight};
  if (score.withheld.empty()) {
    result.why = "no answer is marked as withheld hardware, model, workload or time";
    return result;
  }
  double sum = 0;
  for (const Withheld kind : all_withheld) {
    if (!result.why.empty()) result.why += "; ";
    const auto found = score.withheld.find(kind);
    if (found == score.withheld.end()) {
      result.why += fmt::format("{} not shown", withheld_name(kind));
      continue;
    }
    const WithheldErrors& errors = found->second;
    result.why += fmt::format("{} {:.1f}%", withheld_name(kind), errors.errors.mape);
    const double right = by_error(errors.errors.mape, worthless_error);
    std::vector<double> parts = {right};
    if (errors.seen_mape) {
      result.why += fmt::format(" (known {:.1f}%)", *errors.seen_mape);
      const double growth = errors.errors.mape / std::max(*errors.seen_mape, 1.0);
      const double kept = std::clamp((worthless_growth - growth) / (worthless_growth - 1), 0.0, 1.0);
      parts.push_back(right * kept);  // a tool that is half off everywhere keeps its error and has generalized nothing
    }
    sum += mean(parts);
  }
  result.score = sum / static_cast<double>(std::size(all_withheld));
  return result;
}

// What is not known counts nothing: a tool whose one known fact is good is not easy to deploy for that.
DimensionScore deployment(const ToolFacts& facts) {
  DimensionScore result{.name = "deployment", .weight = deployment_weight};
  std::vector<double> parts;
  const auto add = [&](double score, const std::string& words) {
    parts.push_back(score);
    result.why += (result.why.empty() ? "" : "; ") + words;
  };
  if (facts.install_commands) {
    add(clipped(100 * (1 - (*facts.install_commands - 1) / (most_install_commands - 1))),
        fmt::format("{:.0f} commands to install", *facts.install_commands));
  }
  if (facts.seconds_to_first_prediction) {
    add(by_duration(*facts.seconds_to_first_prediction, slow_first_seconds),
        fmt::format("{:.2g} min to the first prediction", *facts.seconds_to_first_prediction / 60));
  }
  if (facts.seconds_per_scenario) {
    add(by_duration(*facts.seconds_per_scenario, slow_scenario_seconds),
        fmt::format("{:.2g} s a scenario", *facts.seconds_per_scenario));
  }
  if (facts.needs_gpu) add(*facts.needs_gpu ? 0.0 : 100.0, *facts.needs_gpu ? "needs a GPU" : "no GPU");
  if (facts.needs_network) {
    add(*facts.needs_network ? 0.0 : 100.0, *facts.needs_network ? "needs a network" : "no network");
  }
  if (parts.empty()) {
    result.why = "needs facts about the tool";
    return result;
  }
  constexpr size_t deployment_facts = 5;
  if (parts.size() < deployment_facts)
    result.why += fmt::format("; {} of {} facts known", parts.size(), deployment_facts);
  result.score = mean(parts) * static_cast<double>(parts.size()) / deployment_facts;
  return result;
}

DimensionScore extensibility(const SuiteScore& score, const ToolFacts& facts) {
  const double covered =
      score.scenarios == 0 ? 0 : 100 * static_cast<double>(score.answered) / static_cast<double>(score.scenarios);
  const int by_file = facts.device_by_file.value_or(false) + facts.model_by_file.value_or(false) +
                      facts.technique_by_flag.value_or(false);
  return {.name = "extensibility",
          .weight = extensibility_weight,
          .score = mean(std::vector<double>{covered, 100.0 * by_file / 3}),
          .why = fmt::format("{} of {} scenarios; by data alone: {} of device, model, technique", score.answered,
                             score.scenarios, by_file)};
}

}  // namespace

ToolFacts read_tool_facts(const JsonView& document) {
  document.allow_only({"name", "source", "install_commands", "seconds_to_first_prediction", "seconds_per_scenario",
                       "needs_gpu", "needs_network", "device_by_file", "model_by_file", "technique_by_flag", "claims",
                       "seen"});
  const auto number = [&](std::string_view key) -> std::optional<double> {
    const auto found = document.find(key);
    return found ? std::optional(found->number({.least = 0, .most = 1e9})) : std::nullopt;
  };
  const auto truth = [&](std::string_view key) -> std::optional<bool> {
    const auto found = document.find(key);
    return found ? std::optional(found->boolean()) : std::nullopt;
  };
  ToolFacts facts{.name = document.at("name").string(), .source = document.at("source").string()};
  facts.install_commands = number("install_commands");
  facts.seconds_to_first_prediction = number("seconds_to_first_prediction");
  facts.seconds_per_scenario = number("seconds_per_scenario");
  facts.needs_gpu = truth("needs_gpu");
  facts.needs_network = truth("needs_network");
  facts.device_by_file = truth("device_by_file");
  facts.model_by_file = truth("model_by_file");
  facts.technique_by_flag = truth("technique_by_flag");
  if (const auto seen = document.find("seen")) facts.seen = seen->string();
  if (const auto claims = document.find("claims")) {
    for (const JsonView& claim : claims->items()) {
      claim.allow_only({"figure", "source"});
      facts.claims.push_back({.figure = claim.at("figure").string(), .source = claim.at("source").string()});
    }
  }
  return facts;
}

SuiteScore score_answers(std::span<const SuiteCard> cards, std::span<const SuiteAnswer> answers,
                         const ToolFacts& facts) {
  SuiteScore score{.scenarios = cards.size()};
  for (const SuiteCard& card : cards) {
    const bool is_survey = card.group == "survey";
    const bool is_answered =
        std::any_of(answers.begin(), answers.end(), [&](const SuiteAnswer& answer) { return answer.id == card.id; });
    score.survey_scenarios += is_survey ? 1 : 0;
    score.answered += is_answered ? 1 : 0;
    score.survey_answered += is_answered && is_survey ? 1 : 0;
  }
  fill_errors(score, scored_cases(cards, answers));
  score.dimensions = {fidelity(score), composition(score), generalization(score), deployment(facts),
                      extensibility(score, facts)};
  for (const DimensionScore& dimension : score.dimensions) {
    if (!dimension.score) continue;
    score.total += dimension.weight * *dimension.score / 100;
    score.assessed_weight += dimension.weight;
  }
  return score;
}

CommonCases common_cases(std::span<const SuiteCard> cards, std::span<const SuiteAnswer> answers,
                         std::span<const SuiteAnswer> others) {
  std::vector<double> own, other;
  const std::vector<ScoredCase> others_scored = scored_cases(cards, others);
  for (const ScoredCase& one : scored_cases(cards, answers)) {
    const auto same = std::find_if(others_scored.begin(), others_scored.end(),
                                   [&](const ScoredCase& candidate) { return candidate.answer->id == one.answer->id; });
    if (same == others_scored.end()) continue;
    own.push_back(std::abs(one.error()));
    other.push_back(std::abs(same->error()));
  }
  if (own.empty()) return {};
  return {.cases = own.size(), .mape = mean(own), .other_mape = mean(other)};
}

}  // namespace foretoken
