#include "report/accuracy/suite_report.h"

#include <cmath>

#include <fmt/format.h>

#include "base/counted.h"
#include "base/statistics.h"
#include "base/text.h"
#include "report/drawing/html_page.h"
#include "report/parts/table.h"

namespace foretoken {
namespace {

std::string command_text(const std::vector<std::string>& command) {
  std::string text = "foretoken";
  for (const std::string& word : command) text += " " + shell_word(word);
  return text;
}

std::string figure(double value) {
  return value >= 1000 ? fmt::format("{:.0f}", value) : fmt::format("{:.3g}", value);
}

std::string interval_of(const SuiteAnswer& answer) {
  return answer.low && answer.high ? fmt::format("{} to {}", figure(*answer.low), figure(*answer.high)) : "none";
}

Json optional_json(const std::optional<double>& value) {
  return value ? Json(*value) : Json();
}

Json check_json(const SuiteCheck& check) {
  return Json::object({{"name", check.name},
                       {"command", command_text(check.command)},
                       {"unit", check.unit},
                       {"measured", check.measured},
                       {"source", check.source},
                       {"seen", check.seen}});
}

Json answer_json(const SuiteAnswer& answer) {
  return Json::object(
      {{"value", answer.value}, {"low", optional_json(answer.low)}, {"high", optional_json(answer.high)}});
}

Json card_json(const SuiteCard& card) {
  Json json = Json::object({{"id", card.id},
                            {"name", card.name},
                            {"group", card.group},
                            {"model", card.model},
                            {"hardware", card.hardware},
                            {"strategy", card.strategy},
                            {"metric", card.metric},
                            {"unit", card.unit},
                            {"stack", card.stack},
                            {"command", command_text(card.command)},
                            {"status", std::string(suite_status_name(card.status))},
                            {"validated_against", card.against}});
  if (card.measured) {
    json.set("measured",
             Json::object(
                 {{"value", card.measured->value}, {"source", card.measured->source}, {"seen", card.measured->seen}}));
  }
  Json checks = Json::array();
  for (const SuiteCheck& check : card.checks) checks.push(check_json(check));
  json.set("checks", std::move(checks));
  if (!card.note.empty()) json.set("note", card.note);
  return json;
}

// A prediction beside its measurement: of the card's scenario, or of one of its checks.
struct MeasuredPrediction {
  const SuiteCard* card = nullptr;
  std::string_view what, unit;
  const SuiteAnswer* predicted = nullptr;
  double measured = 0;
  bool seen = false;

  double error() const { return suite_error(predicted->value, measured); }
};

// Of the card's own measurement, or of that of its check at place `at`; none where there is no prediction.
std::optional<MeasuredPrediction> measured_prediction(const SuiteCard& card, const SuiteRun& run,
                                                      std::optional<size_t> at) {
  if (!at) {
    if (!card.measured || !run.error.empty()) return std::nullopt;
    return MeasuredPrediction{&card,       "this scenario",      card.unit,
                              &run.answer, card.measured->value, card.measured->seen};
  }
  if (*at >= run.checks.size() || !run.checks[*at].error.empty()) return std::nullopt;
  const SuiteCheck& check = card.checks[*at];
  return MeasuredPrediction{&card, check.name, check.unit, &run.checks[*at].answer, check.measured, check.seen};
}

std::vector<MeasuredPrediction> measured_predictions(const SuiteCard& card, const SuiteRun& run) {
  std::vector<MeasuredPrediction> found;
  if (const auto own = measured_prediction(card, run, std::nullopt)) found.push_back(*own);
  for (size_t at = 0; at < run.checks.size(); ++at) {
    if (const auto one = measured_prediction(card, run, at)) found.push_back(*one);
  }
  return found;
}

std::vector<MeasuredPrediction> measured_predictions(const std::vector<SuiteCard>& cards,
                                                     const std::vector<SuiteRun>& runs) {
  std::vector<MeasuredPrediction> all;
  for (size_t i = 0; i < cards.size(); ++i) {
    const std::vector<MeasuredPrediction> of_card = measured_predictions(cards[i], runs[i]);
    all.insert(all.end(), of_card.begin(), of_card.end());
  }
  return all;
}

std::optional<double> mean_error(const std::vector<MeasuredPrediction>& predictions) {
  std::vector<double> errors;
  for (const MeasuredPrediction& one : predictions) errors.push_back(std::abs(one.error()));
  return errors.empty() ? std::nullopt : std::optional(mean(errors));
}

std::string signed_percent(double value) {
  return fmt::format("{:+.1f}%", value);
}

constexpr std::string_view measured_legend =
    "this scenario: a measurement of the scenario itself. The other rows are the closest measurements of the same kind "
    "that we found. known before: the measurement was known when constants were fitted or chosen. A measurement shown "
    "for two scenarios counts once in the mean. {json} lists the sources.";

std::string measured_text(const std::vector<MeasuredPrediction>& predictions) {
  if (predictions.empty()) return "";
  Table table({{.title = "id", .align = Table::Align::left, .is_name = true},
               {.title = "measured configuration", .align = Table::Align::left},
               {.title = "unit", .align = Table::Align::left},
               {.title = "predicted"},
               {.title = "measured"},
               {.title = "error"},
               {.title = "known before", .align = Table::Align::left}});
  for (const MeasuredPrediction& one : predictions) {
    table.add({one.card->id, std::string(one.what), std::string(one.unit), figure(one.predicted->value),
               figure(one.measured), signed_percent(one.error()), one.seen ? "yes" : "no"});
  }
  return "\nPredictions beside measurements\n\n" + table.text() + "\n" +
         wrap_lines(std::string(measured_legend) + "\n", page_width(), 0);
}

// How many answers are backed by a measurement, and how far off those predictions are.
struct ValidationCount {
  size_t validated = 0;                 // scenarios with at least one prediction beside a measurement
  size_t measurements = 0, unseen = 0;  // each once, even where several scenarios show it
  std::optional<double> error, unseen_error;
};

ValidationCount validation_count(const std::vector<SuiteCard>& cards, const std::vector<SuiteRun>& runs) {
  ValidationCount count;
  for (size_t i = 0; i < cards.size(); ++i) count.validated += measured_predictions(cards[i], runs[i]).empty() ? 0 : 1;
  std::vector<MeasuredPrediction> all, unseen;
  for (const auto& [card, check] : distinct_measurements(cards)) {
    const auto one = measured_prediction(cards[card], runs[card], check);
    if (!one) continue;
    all.push_back(*one);
    if (!one->seen) unseen.push_back(*one);
  }
  count.measurements = all.size();
  count.unseen = unseen.size();
  count.error = mean_error(all);
  count.unseen_error = mean_error(unseen);
  return count;
}

std::string dimension_text(const std::optional<double>& score) {
  return score ? fmt::format("{:.0f}", *score) : "-";
}

Json case_errors_json(const ErrorSummary& errors) {
  return Json::object({{"n", static_cast<int64_t>(errors.n)},
                       {"mape", errors.mape},
                       {"median_ape", errors.median_ape},
                       {"p90_ape", errors.p90_ape},
                       {"bias", errors.bias}});
}

std::string case_level_table(const SuiteScore& score) {
  Table table({{.title = "level", .align = Table::Align::left},
               {.title = "cases"},
               {.title = "mean error"},
               {.title = "median"},
               {.title = "90th percentile"},
               {.title = "maximum"},
               {.title = "bias"}});
  const auto percent = [](double value) { return fmt::format("{:.1f}%", value); };
  for (const auto& [level, errors] : score.levels) {
    table.add({std::string(suite_level_name(level)), fmt::format("{}", errors.errors.n), percent(errors.errors.mape),
               percent(errors.errors.median_ape), percent(errors.errors.p90_ape), percent(errors.maximum),
               fmt::format("{:+.1f}%", errors.errors.bias)});
  }
  return table.text();
}

constexpr std::string_view leaderboard_legend =
    "assessed: share of the weights (fidelity 40, composition 20, generalization 20, deployment 10, extensibility 10) "
    "for which something is known; the rest counts as 0. cases: predictions of something that was measured. error: "
    "mean absolute error over those cases. Each tool is scored on what it was built for, so compare the errors of two "
    "tools only on the same cases.";

bool is_ranked(const RankedTool& tool) {
  return tool.score.measured_cases > 0;
}

std::vector<std::string> names_without_cases(const std::vector<RankedTool>& tools) {
  std::vector<std::string> names;
  for (const RankedTool& tool : tools) {
    if (!is_ranked(tool)) names.push_back(tool.facts.name);
  }
  return names;
}

std::string unranked_text(const std::vector<RankedTool>& tools) {
  const std::vector<std::string> names = names_without_cases(tools);
  if (names.empty()) return "";
  return fmt::format("Not ranked, because no predictions beside measurements were found: {}.", fmt::join(names, ", "));
}

std::vector<std::string> leaderboard_cells(const RankedTool& tool) {
  std::vector<std::string> cells = {tool.facts.name, fmt::format("{:.0f}", tool.score.total),
                                    fmt::format("{:.0f}%", tool.score.assessed_weight)};
  for (const DimensionScore& dimension : tool.score.dimensions) cells.push_back(dimension_text(dimension.score));
  const auto percent = [](double value) { return fmt::format("{:.1f}%", value); };
  cells.push_back(fmt::format("{}", tool.score.measured_cases));
  cells.push_back(tool.score.case_mape ? percent(*tool.score.case_mape) : "-");
  const bool compares = tool.common.cases > 0;
  cells.push_back(compares ? fmt::format("{}", tool.common.cases) : "");
  cells.push_back(compares ? percent(tool.common.mape) : "");
  cells.push_back(compares ? percent(tool.common.other_mape) : "");
  cells.push_back(compares ? tool.facts.seen : "");
  return cells;
}

}  // namespace

std::string suite_list_text(const std::vector<SuiteCard>& cards) {
  std::string text;
  for (const SuiteCard& card : cards) {
    text += wrap_lines(fmt::format("{:<6}{}: {} on {}; {}; {}. {} ({})\n", card.id, card.name, card.model,
                                   card.hardware, card.strategy, card.stack, card.metric, card.unit),
                       page_width(), 6);
    text += wrap_lines(fmt::format("      {}\n", command_text(card.command)), page_width(), 10);
    text +=
        wrap_lines(fmt::format("      {}: {}\n", suite_status_sentence(card.status), card.against), page_width(), 10);
    if (card.measured) {
      text += wrap_lines(
          fmt::format("      measured: {} {} ({})\n", figure(card.measured->value), card.unit, card.measured->source),
          page_width(), 10);
    }
    if (!card.note.empty()) text += wrap_lines(fmt::format("      note: {}\n", card.note), page_width(), 10);
    for (const SuiteCheck& check : card.checks) {
      text += wrap_lines(fmt::format("      check: {}: {} {} measured ({})\n", check.name, figure(check.measured),
                                     check.unit, check.source),
                         page_width(), 10);
      text += wrap_lines(fmt::format("        {}\n", command_text(check.command)), page_width(), 10);
    }
  }
  return text + fmt::format("\n{}. `foretoken suite` runs them.\n", counted(cards.size(), "scenario"));
}

Json suite_list_json(const std::vector<SuiteCard>& cards) {
  Json list = Json::array();
  for (const SuiteCard& card : cards) list.push(card_json(card));
  return Json::object({{"scenarios", std::move(list)}});
}

std::string suite_text(const std::vector<SuiteCard>& cards, const std::vector<SuiteRun>& runs, Answerer answerer) {
  Table table({{.title = "id", .align = Table::Align::left},
               {.title = "scenario", .align = Table::Align::left},
               {.title = "metric", .align = Table::Align::left},
               {.title = "answer"},
               {.title = "90% interval"},
               {.title = "mean abs. error"},
               {.title = "status", .align = Table::Align::left}});
  size_t answered = 0;
  std::string errors, notes;
  std::vector<std::string> missing;
  for (size_t i = 0; i < cards.size(); ++i) {
    const SuiteCard& card = cards[i];
    const SuiteRun& run = runs[i];
    if (run.error == not_answered) {
      missing.push_back(card.id);
      continue;
    }
    const bool fine = run.error.empty();
    const std::optional<double> error = mean_error(measured_predictions(card, run));
    answered += fine ? 1 : 0;
    table.add({card.id, card.name, fmt::format("{}, {}", card.metric, card.unit), fine ? figure(run.answer.value) : "-",
               fine ? interval_of(run.answer) : "-", error ? fmt::format("{:.1f}%", *error) : "",
               std::string(suite_status_name(card.status))});
    if (!fine) errors += wrap_lines(fmt::format("{}: {}\n", card.id, run.error), page_width(), 6);
    for (const SuiteRun& check : run.checks) {
      if (check.error.empty()) continue;
      errors += wrap_lines(fmt::format("{}, {}: {}\n", card.id, check.answer.id, check.error), page_width(), 6);
    }
    if (!card.note.empty()) notes += wrap_lines(fmt::format("{:<6}{}\n", card.id, card.note), page_width(), 6);
  }
  if (!missing.empty()) {
    errors += wrap_lines(fmt::format("not answered: {}\n", fmt::join(missing, ", ")), page_width(), 2);
  }
  const std::string rows = missing.size() < cards.size() ? table.text() + "\n" : "";
  const std::vector<MeasuredPrediction> predictions = measured_predictions(cards, runs);
  std::string text = rows + fmt::format("{} of {} answered.\n", answered, counted(cards.size(), "scenario")) + errors;
  if (answerer == Answerer::other) return text;
  text += wrap_lines(std::string(suite_status_legend) + "\n", page_width(), 0);
  if (predictions.empty()) return text;
  const ValidationCount count = validation_count(cards, runs);
  text +=
      wrap_lines(fmt::format("Scenarios backed by a measurement: {}. Mean absolute error: {:.1f}% over {}",
                             count.validated, *count.error, counted(count.measurements, "prediction")) +
                     (count.unseen_error ? fmt::format(", {:.1f}% over the {} whose measurement was not known before",
                                                       *count.unseen_error, count.unseen)
                                         : "") +
                     ".\n",
                 page_width(), 0);
  text += measured_text(predictions);
  if (!notes.empty()) text += "\nNotes\n\n" + notes;
  return text;
}

namespace {

Json checks_json(const SuiteCard& card, const SuiteRun& run) {
  Json list = Json::array();
  for (size_t at = 0; at < run.checks.size(); ++at) {
    const SuiteCheck& check = card.checks[at];
    const SuiteRun& made = run.checks[at];
    Json json = check_json(check);
    if (made.error.empty()) {
      json.set("predicted", answer_json(made.answer));
      json.set("error_percent", suite_error(made.answer.value, check.measured));
    } else {
      json.set("error", made.error);
    }
    list.push(std::move(json));
  }
  return list;
}

}  // namespace

Json suite_json(const std::vector<SuiteCard>& cards, const std::vector<SuiteRun>& runs, Answerer answerer) {
  Json list = Json::array();
  int64_t answered = 0;
  for (size_t i = 0; i < cards.size(); ++i) {
    Json json = card_json(cards[i]);
    const SuiteRun& run = runs[i];
    if (!run.checks.empty()) json.set("checks", checks_json(cards[i], run));
    if (run.error.empty()) {
      ++answered;
      if (cards[i].measured) {
        json.set("error_percent", suite_error(run.answer.value, cards[i].measured->value));
      }
      json.set("answer", answer_json(run.answer));
    } else {
      json.set("error", run.error);
    }
    list.push(std::move(json));
  }
  Json json = Json::object(
      {{"scenarios", std::move(list)}, {"answered", answered}, {"of", static_cast<int64_t>(cards.size())}});
  if (answerer == Answerer::other) return json;
  const ValidationCount count = validation_count(cards, runs);
  json.set("validation", Json::object({{"scenarios", static_cast<int64_t>(count.validated)},
                                       {"measurements", static_cast<int64_t>(count.measurements)},
                                       {"mape", optional_json(count.error)},
                                       {"unseen", static_cast<int64_t>(count.unseen)},
                                       {"unseen_mape", optional_json(count.unseen_error)}}));
  return json;
}

std::string suite_score_text(const SuiteScore& score, const ToolFacts& facts) {
  Table table({{.title = "dimension", .align = Table::Align::left},
               {.title = "weight"},
               {.title = "score"},
               {.title = "figures", .align = Table::Align::left}});
  for (const DimensionScore& dimension : score.dimensions) {
    table.add(
        {dimension.name, fmt::format("{:.0f}%", dimension.weight), dimension_text(dimension.score), dimension.why});
  }
  table.add_rule();
  table.add({"total", fmt::format("{:.0f}%", score.assessed_weight), fmt::format("{:.0f}", score.total),
             score.assessed_weight < 100 ? "dimensions without a score count as 0" : ""});
  const auto share = [](size_t part, size_t whole) {
    return whole == 0 ? 0.0 : 100 * static_cast<double>(part) / static_cast<double>(whole);
  };
  std::string text =
      wrap_lines(fmt::format("{}, scored from 0 to 100 ({})\n\n", facts.name, facts.source), page_width(), 2) +
      table.text() + "\n";
  if (!score.levels.empty()) text += case_level_table(score) + "\n";
  text +=
      fmt::format("answers {} of {} scenarios of the survey ({:.0f}%), {} of all {} ({:.0f}%)\n", score.survey_answered,
                  score.survey_scenarios, share(score.survey_answered, score.survey_scenarios), score.answered,
                  score.scenarios, share(score.answered, score.scenarios));
  for (const ToolClaim& claim : facts.claims) {
    text += wrap_lines(fmt::format("published, not scored: {} ({})\n", claim.figure, claim.source), page_width(), 2);
  }
  return text;
}

Json suite_score_json(const SuiteScore& score, const ToolFacts& facts) {
  Json dimensions = Json::object({});
  for (const DimensionScore& dimension : score.dimensions) {
    dimensions.set(
        dimension.name,
        Json::object({{"weight", dimension.weight}, {"score", optional_json(dimension.score)}, {"of", dimension.why}}));
  }
  Json levels = Json::object({});
  for (const auto& [level, errors] : score.levels) {
    Json json = case_errors_json(errors.errors);
    json.set("maximum", errors.maximum);
    levels.set(std::string(suite_level_name(level)), std::move(json));
  }
  Json withheld = Json::object({});
  for (const auto& [kind, errors] : score.withheld) {
    Json json = case_errors_json(errors.errors);
    json.set("seen_mape", optional_json(errors.seen_mape));
    withheld.set(std::string(withheld_name(kind)), std::move(json));
  }
  Json attribution;
  if (score.attribution) {
    attribution = Json::object({{"cases", static_cast<int64_t>(score.attribution->cases)},
                                {"total_error", score.attribution->total_error},
                                {"from_parts", score.attribution->from_parts},
                                {"from_composition", score.attribution->from_composition}});
  }
  Json claims = Json::array();
  for (const ToolClaim& claim : facts.claims) {
    claims.push(Json::object({{"figure", claim.figure}, {"source", claim.source}}));
  }
  return Json::object({{"tool", facts.name},
                       {"facts_source", facts.source},
                       {"total", score.total},
                       {"assessed_weight", score.assessed_weight},
                       {"scenarios", static_cast<int64_t>(score.scenarios)},
                       {"answered", static_cast<int64_t>(score.answered)},
                       {"survey_scenarios", static_cast<int64_t>(score.survey_scenarios)},
                       {"survey_answered", static_cast<int64_t>(score.survey_answered)},
                       {"measured_cases", static_cast<int64_t>(score.measured_cases)},
                       {"mape", optional_json(score.mape)},
                       {"case_mape", optional_json(score.case_mape)},
                       {"maximum_error", optional_json(score.maximum_error)},
                       {"spearman", optional_json(score.rank)},
                       {"coverage90", optional_json(score.coverage90)},
                       {"scaling_error", optional_json(score.scaling_error)},
                       {"levels", std::move(levels)},
                       {"model_gap", optional_json(score.model_gap)},
                       {"system_gap", optional_json(score.system_gap)},
                       {"attribution", std::move(attribution)},
                       {"withheld", std::move(withheld)},
                       {"dimensions", std::move(dimensions)},
                       {"claims", std::move(claims)}});
}

std::string leaderboard_text(const std::vector<RankedTool>& tools) {
  Table table({{.title = "tool", .align = Table::Align::left, .is_name = true},
               {.title = "total"},
               {.title = "assessed"},
               {.title = "fidelity"},
               {.title = "compos."},
               {.title = "general."},
               {.title = "deploy"},
               {.title = "extend"},
               {.title = "cases"},
               {.title = "error"}});
  Table same({{.title = "tool", .align = Table::Align::left, .is_name = true},
              {.title = "same cases"},
              {.title = "its error"},
              {.title = "foretoken's"},
              {.title = "known before", .align = Table::Align::left}});
  constexpr size_t own_columns = 10;
  for (const RankedTool& tool : tools) {
    if (!is_ranked(tool)) continue;
    const std::vector<std::string> cells = leaderboard_cells(tool);
    table.add({cells.begin(), cells.begin() + own_columns});
    if (tool.common.cases == 0) continue;
    std::vector<std::string> row(cells.begin() + own_columns, cells.end());
    row.insert(row.begin(), cells.front());
    same.add(row);
  }
  std::string text = "Prediction tools by their answers to measured cases, 0 to 100\n\n" + table.text() +
                     "\nBoth on the same cases\n\n" + same.text() + "\n";
  text += wrap_lines(std::string(leaderboard_legend) + "\n", page_width(), 0);
  if (const std::string unranked = unranked_text(tools); !unranked.empty()) {
    text += "\n" + wrap_lines(unranked + "\n", page_width(), 0);
  }
  for (const RankedTool& tool : tools) {
    for (const ToolClaim& claim : tool.facts.claims) {
      text +=
          wrap_lines(fmt::format("{}, published, not scored: {} ({})\n", tool.facts.name, claim.figure, claim.source),
                     page_width(), 2);
    }
  }
  return text;
}

Json leaderboard_json(const std::vector<RankedTool>& tools) {
  Json list = Json::array();
  for (const RankedTool& tool : tools) {
    Json json = suite_score_json(tool.score, tool.facts);
    json.set("ranked", is_ranked(tool));
    json.set("unanswered", static_cast<int64_t>(tool.unanswered));
    if (tool.common.cases > 0) {
      json.set("same_cases", Json::object({{"cases", static_cast<int64_t>(tool.common.cases)},
                                           {"mape", tool.common.mape},
                                           {"foretoken_mape", tool.common.other_mape},
                                           {"known_before", tool.facts.seen}}));
    }
    list.push(std::move(json));
  }
  return Json::object({{"tools", std::move(list)}});
}

std::string leaderboard_html(const std::vector<RankedTool>& tools) {
  HtmlPage page("Prediction tools compared");
  std::vector<std::vector<std::string>> rows;
  for (const RankedTool& tool : tools) {
    if (is_ranked(tool)) rows.push_back(leaderboard_cells(tool));
  }
  if (!rows.empty()) {
    page.sentence(fmt::format("{} leads {} tools with {} of 100.", rows.front()[0], rows.size(), rows.front()[1]));
  }
  page.paragraph(leaderboard_legend);
  page.table({"tool", "total", "assessed", "fidelity", "composition", "generalization", "deployment", "extensibility",
              "measured cases", "error", "same cases", "error there", "foretoken there", "known before"},
             rows);
  if (const std::string unranked = unranked_text(tools); !unranked.empty()) page.paragraph(unranked);
  for (const RankedTool& tool : tools) {
    page.heading(tool.facts.name);
    std::vector<std::vector<std::string>> dimensions;
    for (const DimensionScore& dimension : tool.score.dimensions) {
      dimensions.push_back(
          {dimension.name, fmt::format("{:.0f}%", dimension.weight), dimension_text(dimension.score), dimension.why});
    }
    page.table({"dimension", "weight", "score", "figures"}, dimensions);
    for (const ToolClaim& claim : tool.facts.claims) {
      page.paragraph(fmt::format("Published, not scored: {} ({})", claim.figure, claim.source));
    }
    page.paragraph(fmt::format("Facts: {}", tool.facts.source));
  }
  page.heading("Repeat it");
  page.preformatted("foretoken suite {leaderboard} {html} leaderboard.html");
  return page.finish();
}

}  // namespace foretoken
