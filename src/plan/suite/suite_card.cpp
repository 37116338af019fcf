#include "plan/suite/suite_card.h"

#include <algorithm>
#include <array>
#include <limits>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"

namespace foretoken {
namespace {

constexpr std::array<std::pair<std::string_view, SuiteStatus>, 3> statuses = {{
    {"validated", SuiteStatus::validated},
    {"layers", SuiteStatus::layers},
    {"formula", SuiteStatus::formula},
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
  view.fail("validated, layers or formula");
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
  document.allow_only({"id", "name", "group", "level", "model", "hardware", "strategy", "metric", "unit", "command",
                       "value", "scale", "validation", "measured", "scaling"});
  SuiteCard card{.id = document.at("id").string(),
                 .name = document.at("name").string(),
                 .group = document.at("group").string(),
                 .model = document.at("model").string(),
                 .hardware = document.at("hardware").string(),
                 .strategy = document.at("strategy").string(),
                 .metric = document.at("metric").string(),
                 .unit = document.at("unit").string(),
                 .value = document.at("value").string()};
  if (card.id.empty()) document.at("id").fail("a name such as T1.1");
  for (const JsonView& word : document.at("command").items()) card.command.push_back(word.string());
  if (card.command.empty()) document.at("command").fail("the arguments of foretoken");
  if (const auto level = document.find("level")) {
    const auto known = suite_level_of(level->string());
    if (!known) level->fail("kernel, model or system");
    card.level = *known;
  }
  constexpr double least_scale = 1e-30;
  if (const auto scale = document.find("scale")) card.scale = scale->number({.least = least_scale});
  const JsonView validation = document.at("validation");
  validation.allow_only({"status", "against"});
  card.status = status_of(validation.at("status"));
  card.against = validation.at("against").string();
  constexpr double least_measured = std::numeric_limits<double>::min();
  if (const auto measured = document.find("measured")) {
    measured->allow_only({"value", "source"});
    card.measured = {.value = measured->at("value").number({.least = least_measured}),
                     .source = measured->at("source").string()};
  }
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

}  // namespace foretoken
