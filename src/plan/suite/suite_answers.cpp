#include "plan/suite/suite_answers.h"

#include <algorithm>
#include <array>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"

namespace foretoken {
namespace {

constexpr std::array<std::pair<std::string_view, Withheld>, 4> withheld_kinds = {{
    {"hardware", Withheld::hardware},
    {"model", Withheld::model},
    {"workload", Withheld::workload},
    {"time", Withheld::time},
}};

constexpr Range<double> positive = {.least = 1e-30, .most = 1e30};

// One step into a document: a key, or the place in a list.
JsonView part_of(const JsonView& view, const std::string& key) {
  if (!view.is(Json::Kind::array)) return view.at(key);
  const std::vector<JsonView> items = view.items();
  size_t place = 0;
  for (const char c : key) place = c >= '0' && c <= '9' ? place * 10 + static_cast<size_t>(c - '0') : items.size();
  if (key.empty() || place >= items.size()) view.fail(fmt::format("an item at place {}", printable(key)));
  return items[place];
}

// The columns of an answers file; only the first two must be there.
struct AnswerColumns {
  explicit AnswerColumns(const CsvReader& reader)
      : scenario(reader.column("scenario")),
        value(reader.column("value")),
        low(reader.find_column("low")),
        high(reader.find_column("high")),
        level(reader.find_column("level")),
        group(reader.find_column("group")),
        size(reader.find_column("size")),
        measured(reader.find_column("measured")),
        withheld(reader.find_column("withheld")),
        part_of(reader.find_column("part_of")),
        source(reader.find_column("source")) {}

  size_t scenario, value;
  std::optional<size_t> low, high, level, group, size, measured, withheld, part_of, source;
};

std::string optional_text(const CsvReader& reader, const std::optional<size_t>& column) {
  return column ? std::string(reader.cell(*column)) : "";
}

std::optional<double> optional_number(const CsvReader& reader, const std::optional<size_t>& column,
                                      Range<double> allowed = {}) {
  if (!column || reader.cell(*column).empty()) return std::nullopt;
  return reader.number(*column, allowed);
}

std::vector<Withheld> withheld_of(const CsvReader& reader, const std::optional<size_t>& column) {
  std::vector<Withheld> kinds;
  if (!column || reader.cell(*column).empty()) return kinds;
  for (const std::string_view word : split(reader.cell(*column), " ")) {
    const auto known = std::find_if(withheld_kinds.begin(), withheld_kinds.end(),
                                    [&](const auto& kind) { return kind.first == word; });
    if (known == withheld_kinds.end()) {
      reader.fail(*column, "hardware, model, workload or time, or several of them with a space between");
    }
    kinds.push_back(known->second);
  }
  return kinds;
}

// A case that is no card brings its own measurement.
void read_case(const CsvReader& reader, const AnswerColumns& columns, SuiteAnswer& answer) {
  const auto level = suite_level_of(optional_text(reader, columns.level));
  if (!level)
    reader.fail(columns.level.value_or(columns.scenario), "kernel, model or system for a case that is no card");
  answer.level = *level;
  answer.group = optional_text(reader, columns.group);
  if (answer.group.empty()) {
    reader.fail(columns.group.value_or(columns.scenario), "the group of cases that this one is ranked with");
  }
  answer.size = optional_number(reader, columns.size, positive);
  answer.measured = optional_number(reader, columns.measured, positive);
  if (!answer.measured) {
    reader.fail(columns.measured.value_or(columns.scenario), "a scenario of the suite, or a measured value");
  }
  answer.part_of = optional_text(reader, columns.part_of);
}

void check_parts(const CsvReader& reader, const std::vector<SuiteAnswer>& answers) {
  std::set<std::string_view> known;
  for (const SuiteAnswer& answer : answers) known.insert(answer.id);
  for (const SuiteAnswer& answer : answers) {
    if (answer.part_of.empty() || known.contains(answer.part_of)) continue;
    throw InputError({.source = reader.source(),
                      .value = printable(answer.part_of),
                      .expected = fmt::format("the scenario that {} is a part of, answered in the same file",
                                              printable(answer.id))});
  }
}

SuiteAnswer answer_at(const std::string& id, const std::string& place, double scale, const Json& document) {
  JsonView view(document, "the answer of " + id);
  for (const std::string_view key : split(place, ".")) view = part_of(view, std::string(key));
  SuiteAnswer answer{.id = id};
  if (view.is_number()) {
    answer.value = view.number() * scale;
    return answer;
  }
  answer.value = view.at("value").number() * scale;
  answer.low = view.at("low").number() * scale;
  answer.high = view.at("high").number() * scale;
  return answer;
}

}  // namespace

std::string_view withheld_name(Withheld kind) {
  for (const auto& [name, known] : withheld_kinds) {
    if (known == kind) return name;
  }
  throw InternalError("a kind of withheld data without a name");
}

SuiteAnswer suite_answer(const SuiteCard& card, const Json& document) {
  SuiteAnswer answer = answer_at(card.id, card.value, card.scale, document);
  if (card.measured && !card.measured->seen) answer.withheld = {Withheld::workload};
  return answer;
}

SuiteAnswer suite_check_answer(const SuiteCard& card, size_t at, const Json& document) {
  const SuiteCheck& check = card.checks.at(at);
  SuiteAnswer answer = answer_at(fmt::format("{}/{}", card.id, check.name), check.value, check.scale, document);
  answer.level = card.level;
  answer.group = fmt::format("checks of {}, {}", card.id, check.unit);
  answer.measured = check.measured;
  if (!check.seen) answer.withheld = {Withheld::workload};
  answer.source = check.source;
  return answer;
}

double suite_error(double predicted, double measured) {
  constexpr double percent = 100;
  return percent * (predicted / measured - 1);
}

SuiteAnswers read_suite_answers(const std::filesystem::path& path, const std::vector<SuiteCard>& cards) {
  CsvReader reader(path);
  return read_suite_answers(reader, cards);
}

SuiteAnswers read_suite_answers(CsvReader& reader, const std::vector<SuiteCard>& cards) {
  const AnswerColumns columns(reader);
  std::vector<std::string> known;
  for (const SuiteCard& card : cards) known.push_back(card.id);
  std::set<std::string> seen;
  SuiteAnswers result;
  while (reader.next()) {
    SuiteAnswer answer{.id = std::string(reader.cell(columns.scenario))};
    const bool is_card = std::find(known.begin(), known.end(), answer.id) != known.end();
    if (!is_card && optional_text(reader, columns.measured).empty()) {
      reader.fail(columns.scenario, "a scenario of the suite, or a case with a measured value",
                  nearest_name(answer.id, known).value_or(""));
    }
    if (!seen.insert(answer.id).second) reader.fail(columns.scenario, "each scenario once");
    if (reader.cell(columns.value).empty()) {
      ++result.unanswered;
      continue;
    }
    answer.value = reader.number(columns.value, positive);
    answer.low = optional_number(reader, columns.low);
    answer.high = optional_number(reader, columns.high);
    if (!is_card) read_case(reader, columns, answer);
    answer.withheld = withheld_of(reader, columns.withheld);
    answer.source = optional_text(reader, columns.source);
    result.answers.push_back(std::move(answer));
  }
  check_parts(reader, result.answers);
  return result;
}

std::string suite_answers_csv(const std::vector<SuiteAnswer>& answers) {
  std::string text = "scenario,value,low,high,level,group,size,measured,withheld,part_of,source,error_percent\n";
  const auto number = [](const std::optional<double>& value) { return value ? fmt::format("{}", *value) : ""; };
  for (const SuiteAnswer& answer : answers) {
    std::string withheld;
    for (const Withheld kind : answer.withheld) {
      withheld += fmt::format("{}{}", withheld.empty() ? "" : " ", withheld_name(kind));
    }
    const auto error = answer.measured ? std::optional(suite_error(answer.value, *answer.measured)) : std::nullopt;
    text += fmt::format("{},{},{},{},{},{},{},{},{},{},{},{}\n", csv_cell(answer.id), answer.value, number(answer.low),
                        number(answer.high), answer.measured ? suite_level_name(answer.level) : "",
                        csv_cell(answer.group), number(answer.size), number(answer.measured), withheld,
                        csv_cell(answer.part_of), csv_cell(answer.source), number(error));
  }
  return text;
}

}  // namespace foretoken
