#include "plan/suite/suite_card.h"

#include <algorithm>
#include <array>
#include <limits>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "base/csv.h"
#include "base/error.h"
#include "base/text.h"

namespace foretoken {
namespace {

constexpr std::array<std::pair<std::string_view, SuiteStatus>, 3> statuses = {{
    {"validated", SuiteStatus::validated},
    {"layers", SuiteStatus::layers},
    {"formula", SuiteStatus::formula},
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

// One step into a document: a key, or the place in a list.
JsonView part_of(const JsonView& view, const std::string& key) {
  if (!view.is(Json::Kind::array)) return view.at(key);
  const std::vector<JsonView> items = view.items();
  size_t place = 0;
  for (const char c : key) place = c >= '0' && c <= '9' ? place * 10 + static_cast<size_t>(c - '0') : items.size();
  if (key.empty() || place >= items.size()) view.fail(fmt::format("an item at place {}", printable(key)));
  return items[place];
}

}  // namespace

std::string_view suite_status_name(SuiteStatus status) {
  for (const auto& [name, known] : statuses) {
    if (known == status) return name;
  }
  throw InternalError("a status without a name");
}

SuiteCard read_suite_card(const JsonView& document) {
  document.allow_only({"id", "name", "group", "model", "hardware", "strategy", "metric", "unit", "command", "value",
                       "scale", "validation", "measured", "scaling"});
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

SuiteAnswer suite_answer(const SuiteCard& card, const Json& document) {
  JsonView view(document, "the answer of " + card.id);
  for (const std::string_view key : split(card.value, ".")) view = part_of(view, std::string(key));
  SuiteAnswer answer{.id = card.id};
  if (view.is_number()) {
    answer.value = view.number() * card.scale;
    return answer;
  }
  answer.value = view.at("value").number() * card.scale;
  answer.low = view.at("low").number() * card.scale;
  answer.high = view.at("high").number() * card.scale;
  return answer;
}

std::vector<SuiteAnswer> read_suite_answers(const std::filesystem::path& path, const std::vector<SuiteCard>& cards) {
  CsvReader reader(path);
  const size_t scenario = reader.column("scenario"), value = reader.column("value");
  const auto low = reader.find_column("low"), high = reader.find_column("high");
  std::vector<std::string> known, seen;
  for (const SuiteCard& card : cards) known.push_back(card.id);
  std::vector<SuiteAnswer> answers;
  while (reader.next()) {
    SuiteAnswer answer{.id = std::string(reader.cell(scenario)), .value = reader.number(value)};
    if (std::find(known.begin(), known.end(), answer.id) == known.end()) {
      reader.fail(scenario, "a scenario of the suite", nearest_name(answer.id, known).value_or(""));
    }
    if (std::find(seen.begin(), seen.end(), answer.id) != seen.end()) reader.fail(scenario, "each scenario once");
    seen.push_back(answer.id);
    if (low && !reader.cell(*low).empty()) answer.low = reader.number(*low);
    if (high && !reader.cell(*high).empty()) answer.high = reader.number(*high);
    answers.push_back(std::move(answer));
  }
  return answers;
}

std::string suite_answers_csv(const std::vector<SuiteAnswer>& answers) {
  std::string text = "scenario,value,low,high\n";
  const auto bound = [](const std::optional<double>& value) { return value ? fmt::format("{}", *value) : ""; };
  for (const SuiteAnswer& answer : answers) {
    text += fmt::format("{},{},{},{}\n", csv_cell(answer.id), answer.value, bound(answer.low), bound(answer.high));
  }
  return text;
}

}  // namespace foretoken
