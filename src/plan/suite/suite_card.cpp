#include "plan/suite/suite_card.h"

#include <algorithm>
#include <array>
#include <limits>
#include <set>
#include <system_error>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"

namespace foretoken {
namespace {

constexpr std::array<std::pair<std::string_view, SuiteStatus>, 4> statuses = {{
    {"validated", SuiteStatus::validated},
    {"layers", SuiteStatus::layers},
    {"formula", SuiteStatus::formula},
    {"not validated", SuiteStatus::not_validated},
}};

constexpr std::array<std::pair<std::string_view, SuiteLevel>, 3> suite_levels = {{
    {"kernel", SuiteLevel::kernel},
    {"model", SuiteLevel::model},
    {"system", SuiteLevel::system},
}};

SuiteStatus status_of(const JsonView& view) {
  const std::string name = view.string();
  for (const auto& [known, status] : statuses) {
    if (known == name) return status;
  }
  view.fail("validated, layers, formula or not validated");
}

constexpr double least_scale = 1e-30;
constexpr double least_measured = std::numeric_limits<double>::min();

std::vector<std::string> words_of(const JsonView& command) {
  std::vector<std::string> words;
  for (const JsonView& word : command.items()) words.push_back(word.string());
  if (words.empty()) command.fail("the arguments of foretoken");
  return words;
}

std::string some_text(const JsonView& view, const std::string& expected) {
  std::string text = view.string();
  if (text.empty()) view.fail(expected);
  return text;
}

SuiteCheck check_of(const JsonView& view) {
  view.allow_only({"name", "command", "value", "scale", "measured", "unit", "source", "seen"});
  SuiteCheck check{.name = some_text(view.at("name"), "the configuration that was measured, in a few words"),
                   .command = words_of(view.at("command")),
                   .value = view.at("value").string(),
                   .measured = view.at("measured").number({.least = least_measured}),
                   .unit = view.at("unit").string(),
                   .source = some_text(view.at("source"), "where the measurement is published")};
  if (const auto scale = view.find("scale")) check.scale = scale->number({.least = least_scale});
  if (const auto seen = view.find("seen")) check.seen = seen->boolean();
  return check;
}

// "I12.3b" -> I, 12, 3, b: ids in the order in which people count.
struct IdOrder {
  std::string letters;
  std::vector<int64_t> numbers;
  std::string last;
  auto operator<=>(const IdOrder&) const = default;
};
IdOrder order_of(const std::string& id) {
  IdOrder order;
  bool in_number = false;
  for (const char c : id) {
    const bool digit = c >= '0' && c <= '9';
    if (digit && !in_number) order.numbers.push_back(0);
    if (digit) {
      order.numbers.back() = std::min<int64_t>(order.numbers.back() * 10 + (c - '0'), 1'000'000);
    } else if (c != '.') {
      (order.numbers.empty() ? order.letters : order.last) += c;
    }
    in_number = digit;
  }
  return order;
}

}  // namespace

std::string_view suite_status_name(SuiteStatus status) {
  for (const auto& [name, known] : statuses) {
    if (known == status) return name;
  }
  throw InternalError("a status without a name");
}

std::string_view suite_status_sentence(SuiteStatus status) {
  switch (status) {
    case SuiteStatus::layers:
      return "not validated as a whole, only its layers";
    case SuiteStatus::formula:
      return "not validated, only compared with a formula";
    default:
      return suite_status_name(status);
  }
}

std::string_view suite_level_name(SuiteLevel level) {
  for (const auto& [name, known] : suite_levels) {
    if (known == level) return name;
  }
  throw InternalError("a level without a name");
}

std::optional<SuiteLevel> suite_level_of(std::string_view name) {
  for (const auto& [known, level] : suite_levels) {
    if (known == name) return level;
  }
  return std::nullopt;
}

SuiteCard read_suite_card(const JsonView& document) {
  document.allow_only({"id", "name", "group", "level", "model", "hardware", "strategy", "stack", "metric", "unit",
                       "command", "value", "scale", "validation", "measured", "checks", "note", "scaling"});
  SuiteCard card{.id = document.at("id").string(),
                 .name = document.at("name").string(),
                 .group = document.at("group").string(),
                 .model = document.at("model").string(),
                 .hardware = document.at("hardware").string(),
                 .strategy = document.at("strategy").string(),
                 .metric = document.at("metric").string(),
                 .unit = document.at("unit").string(),
                 .stack = some_text(document.at("stack"), "the software that the answer is about"),
                 .command = words_of(document.at("command")),
                 .value = document.at("value").string()};
  if (card.id.empty()) document.at("id").fail("a name such as T1.1");
  if (const auto level = document.find("level")) {
    const auto known = suite_level_of(level->string());
    if (!known) level->fail("kernel, model or system");
    card.level = *known;
  }
  if (const auto scale = document.find("scale")) card.scale = scale->number({.least = least_scale});
  const JsonView validation = document.at("validation");
  validation.allow_only({"status", "against"});
  card.status = status_of(validation.at("status"));
  card.against = validation.at("against").string();
  if (const auto measured = document.find("measured")) {
    measured->allow_only({"value", "source", "seen"});
    card.measured = {.value = measured->at("value").number({.least = least_measured}),
                     .source = some_text(measured->at("source"), "where the measurement is published")};
    if (const auto seen = measured->find("seen")) card.measured->seen = seen->boolean();
  }
  if (const auto checks = document.find("checks")) {
    std::set<std::string> names;
    for (const JsonView& check : checks->items()) {
      card.checks.push_back(check_of(check));
      if (!names.insert(card.checks.back().name).second)
        check.at("name").fail("a name that no other check of the card has");
    }
  }
  if (card.status == SuiteStatus::validated && !card.measured && card.checks.empty()) {
    validation.at("status").fail(
        "layers, formula or not validated, because the card has no measurement (validated needs measured or checks)");
  }
  if (const auto note = document.find("note")) card.note = note->string();
  if (const auto scaling = document.find("scaling")) {
    scaling->allow_only({"family", "size"});
    card.scaling = {.family = scaling->at("family").string(),
                    .size = scaling->at("size").number({.least = least_measured})};
  }
  return card;
}

std::vector<SuiteCard> read_suite(const std::filesystem::path& folder) {
  std::vector<SuiteCard> cards;
  std::error_code error;
  const std::filesystem::directory_iterator entries(folder, error);
  if (error) throw InputError({.source = folder.string(), .expected = "a folder of cards that can be read"});
  for (const auto& entry : entries) {
    if (entry.path().extension() != ".json") continue;
    const Json document = read_json_file(entry.path());
    cards.push_back(read_suite_card(JsonView(document, entry.path().string())));
  }
  if (cards.empty()) throw InputError({.source = folder.string(), .expected = "at least one card (*.json)"});
  std::sort(cards.begin(), cards.end(),
            [](const SuiteCard& a, const SuiteCard& b) { return order_of(a.id) < order_of(b.id); });
  for (size_t i = 1; i < cards.size(); ++i) {
    if (cards[i].id == cards[i - 1].id) {
      throw InputError({.source = folder.string(), .value = cards[i].id, .expected = "one card of each id"});
    }
  }
  return cards;
}

std::vector<SuiteMeasurement> distinct_measurements(std::span<const SuiteCard> cards) {
  using Key = std::tuple<std::vector<std::string>, std::string, double>;  // command, value, measured
  std::set<Key> known;
  std::vector<SuiteMeasurement> distinct;
  const auto add = [&](const Key& key, const SuiteMeasurement& measurement) {
    if (known.insert(key).second) distinct.push_back(measurement);
  };
  for (size_t i = 0; i < cards.size(); ++i) {
    if (cards[i].measured) add({cards[i].command, cards[i].value, cards[i].measured->value}, {.card = i});
  }
  for (size_t i = 0; i < cards.size(); ++i) {
    for (size_t at = 0; at < cards[i].checks.size(); ++at) {
      const SuiteCheck& check = cards[i].checks[at];
      add({check.command, check.value, check.measured}, {.card = i, .check = at});
    }
  }
  return distinct;
}

}  // namespace foretoken
