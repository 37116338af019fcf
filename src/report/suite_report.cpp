#include "report/suite_report.h"

#include <fmt/format.h>

#include "base/text.h"
#include "report/table.h"

namespace foretoken {
namespace {

std::string command_text(const SuiteCard& card) {
  std::string text = "foretoken";
  for (const std::string& word : card.command) text += " " + shell_word(word);
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

Json card_json(const SuiteCard& card) {
  Json json = Json::object({{"id", card.id},
                            {"name", card.name},
                            {"group", card.group},
                            {"model", card.model},
                            {"hardware", card.hardware},
                            {"strategy", card.strategy},
                            {"metric", card.metric},
                            {"unit", card.unit},
                            {"command", command_text(card)},
                            {"status", std::string(suite_status_name(card.status))},
                            {"validated_against", card.against}});
  if (card.measured) {
    json.set("measured", Json::object({{"value", card.measured->value}, {"source", card.measured->source}}));
  }
  return json;
}

}  // namespace

std::string suite_list_text(const std::vector<SuiteCard>& cards) {
  std::string text;
  for (const SuiteCard& card : cards) {
    text += wrap_lines(fmt::format("{:<6}{}: {} on {}; {}. {} ({})\n", card.id, card.name, card.model, card.hardware,
                                   card.strategy, card.metric, card.unit),
                       page_width, 6);
    text += wrap_lines(fmt::format("      {}\n", command_text(card)), page_width, 10);
  }
  return text + fmt::format("\n{} scenarios. `foretoken suite` runs them.\n", cards.size());
}

Json suite_list_json(const std::vector<SuiteCard>& cards) {
  Json list = Json::array();
  for (const SuiteCard& card : cards) list.push(card_json(card));
  return Json::object({{"scenarios", std::move(list)}});
}

std::string suite_text(const std::vector<SuiteCard>& cards, const std::vector<SuiteRun>& runs) {
  Table table({{.title = "id", .align = Table::Align::left},
               {.title = "scenario", .align = Table::Align::left},
               {.title = "metric", .align = Table::Align::left},
               {.title = "answer"},
               {.title = "90% interval"},
               {.title = "measured"},
               {.title = "status", .align = Table::Align::left}});
  size_t answered = 0;
  std::string errors;
  for (size_t i = 0; i < cards.size(); ++i) {
    const SuiteCard& card = cards[i];
    const SuiteRun& run = runs[i];
    const bool fine = run.error.empty();
    answered += fine ? 1 : 0;
    table.add({card.id, card.name, fmt::format("{}, {}", card.metric, card.unit), fine ? figure(run.answer.value) : "-",
               fine ? interval_of(run.answer) : "-", card.measured ? figure(card.measured->value) : "",
               std::string(suite_status_name(card.status))});
    if (!fine) errors += wrap_lines(fmt::format("{}: {}\n", card.id, run.error), page_width, 6);
  }
  return table.text() + fmt::format("\n{} of {} scenarios answered.\n", answered, cards.size()) + errors;
}

Json suite_json(const std::vector<SuiteCard>& cards, const std::vector<SuiteRun>& runs) {
  Json list = Json::array();
  int64_t answered = 0;
  for (size_t i = 0; i < cards.size(); ++i) {
    Json json = card_json(cards[i]);
    const SuiteRun& run = runs[i];
    if (run.error.empty()) {
      ++answered;
      json.set("answer", Json::object({{"value", run.answer.value},
                                       {"low", optional_json(run.answer.low)},
                                       {"high", optional_json(run.answer.high)}}));
    } else {
      json.set("error", run.error);
    }
    list.push(std::move(json));
  }
  return Json::object(
      {{"scenarios", std::move(list)}, {"answered", answered}, {"of", static_cast<int64_t>(cards.size())}});
}

std::string suite_score_text(const SuiteScore& score, const ToolFacts& facts) {
  Table table({{.title = "dimension", .align = Table::Align::left},
               {.title = "score"},
               {.title = "of what", .align = Table::Align::left}});
  for (const DimensionScore& dimension : score.dimensions) {
    table.add({dimension.name, dimension.score ? fmt::format("{:.0f}", *dimension.score) : "-", dimension.why});
  }
  const auto share = [](size_t part, size_t whole) {
    return whole == 0 ? 0.0 : 100 * static_cast<double>(part) / static_cast<double>(whole);
  };
  return wrap_lines(fmt::format("{}, scored from 0 to 100 ({})\n\n", facts.name, facts.source), page_width, 2) +
         table.text() +
         fmt::format("\nanswers {} of {} scenarios of the survey ({:.0f}%), {} of all {} ({:.0f}%)\n",
                     score.survey_answered, score.survey_scenarios,
                     share(score.survey_answered, score.survey_scenarios), score.answered, score.scenarios,
                     share(score.answered, score.scenarios));
}

Json suite_score_json(const SuiteScore& score, const ToolFacts& facts) {
  Json dimensions = Json::object({});
  for (const DimensionScore& dimension : score.dimensions) {
    dimensions.set(dimension.name, Json::object({{"score", optional_json(dimension.score)}, {"of", dimension.why}}));
  }
  return Json::object({{"tool", facts.name},
                       {"facts_source", facts.source},
                       {"scenarios", static_cast<int64_t>(score.scenarios)},
                       {"answered", static_cast<int64_t>(score.answered)},
                       {"survey_scenarios", static_cast<int64_t>(score.survey_scenarios)},
                       {"survey_answered", static_cast<int64_t>(score.survey_answered)},
                       {"mape", score.errors.n > 0 ? Json(score.errors.mape) : Json()},
                       {"spearman", score.errors.n > 1 ? Json(score.errors.spearman) : Json()},
                       {"coverage90", score.errors.n > 0 ? Json(score.errors.coverage90) : Json()},
                       {"scaling_error", optional_json(score.scaling_error)},
                       {"dimensions", std::move(dimensions)}});
}

}  // namespace foretoken
