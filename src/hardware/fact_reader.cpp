#include "hardware/fact_reader.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"

namespace foretoken {
namespace {

bool within(double value, const FactBounds& bounds) {
  return value >= bounds.least && value <= bounds.most && (!bounds.whole || std::trunc(value) == value);
}

double read_value(const JsonView& entry, const FactBounds& bounds) {
  const double value = entry.is_number() ? entry.value().number() : std::nan("");
  if (within(value, bounds)) return value;
  std::string suggestion;
  for (const double slip : {1e3, 1e-3}) {
    if (suggestion.empty() && within(value * slip, bounds)) suggestion = fmt::format("{:.6g}", value * slip);
  }
  // Ten digits: bounds print as plain numbers.
  entry.fail(fmt::format("{} between {:.10g} and {:.10g}", bounds.unit, bounds.least, bounds.most), suggestion);
}

template <class Value, class Read>
Fact<Value> read_with_source(const JsonView& entry, const Read& read) {
  if (!entry.is(Json::Kind::object)) {
    entry.fail(R"(an entry like {"value": 3350, "source": "who says so"}: each number cites its source)");
  }
  entry.allow_only({"value", "source", "assumed", "note"});
  Fact<Value> fact;
  fact.value = read(entry.at("value"));
  fact.source = read_text(entry.at("source"));
  if (const auto assumed = entry.find("assumed")) fact.assumed = assumed->boolean();
  fact.note = find_text(entry, "note");
  return fact;
}

}  // namespace

Fact<double> read_fact(const JsonView& entry, const FactBounds& bounds) {
  return read_with_source<double>(entry, [&](const JsonView& value) { return read_value(value, bounds); });
}

Fact<bool> read_fact_yes_or_no(const JsonView& entry) {
  return read_with_source<bool>(entry, [](const JsonView& value) { return value.boolean(); });
}

Fact<size_t> read_fact_choice(const JsonView& entry, std::span<const std::string_view> names) {
  return read_with_source<size_t>(entry, [&](const JsonView& value) { return read_choice(value, names); });
}

std::string read_text(const JsonView& entry) {
  std::string text = entry.string();
  if (text.find_first_not_of(" \t\r\n") == std::string::npos) entry.fail("text that is not blank");
  return text;
}

std::string find_text(const JsonView& object, std::string_view key) {
  const std::optional<JsonView> entry = object.find(key);
  return entry ? read_text(*entry) : std::string();
}

std::vector<std::string> find_texts(const JsonView& object, std::string_view key) {
  std::vector<std::string> texts;
  if (const std::optional<JsonView> list = object.find(key)) {
    for (const JsonView& item : list->items()) texts.push_back(read_text(item));
  }
  return texts;
}

size_t read_choice(const JsonView& entry, std::span<const std::string_view> names) {
  const std::string chosen = entry.string();
  const auto found = std::find(names.begin(), names.end(), chosen);
  if (found != names.end()) return static_cast<size_t>(found - names.begin());
  const std::vector<std::string> candidates(names.begin(), names.end());
  entry.fail(fmt::format("one of {}", fmt::join(names, ", ")), nearest_name(chosen, candidates).value_or(""));
}

void reject_unknown_keys(const JsonView& object, std::span<const std::string> known) {
  for (const auto& [name, member] : object.value().members()) {
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    throw InputError({.source = object.source(),
                      .line = member.line(),
                      .path = printable(object.path().empty() ? name : object.path() + "." + name),
                      .expected = fmt::format("one of the keys {}", fmt::join(known, ", ")),
                      .suggestion = nearest_name(name, known).value_or("")});
  }
}

}  // namespace foretoken
