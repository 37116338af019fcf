// Reading {"value": ..., "source": "..."} entries: used by the readers of device, node and cluster files.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "hardware/device.h"

namespace foretoken {

// What a number may be. Outside these bounds it is almost surely in the wrong unit.
struct FactBounds {
  std::string_view unit;
  double least = 0;
  double most = 0;
  bool whole = false;
};

// InputError for anything but {"value": number within bounds, "source": text, "assumed"?: bool, "note"?: text}.
// Suggests the value times or over 1000 where that would be in bounds (3.35 TB/s written as GB/s).
Fact<double> read_fact(const JsonView& entry, const FactBounds& bounds);

// The same where the value is true or false, or one of `names`, whose index it then is.
Fact<bool> read_fact_yes_or_no(const JsonView& entry);
Fact<size_t> read_fact_choice(const JsonView& entry, std::span<const std::string_view> names);

// A fact in the file's unit -> one in base units.
template <class Value>
Fact<Value> in_base_units(const Fact<double>& fact, double units) {
  return {.value = static_cast<Value>(fact.value * units),
          .source = fact.source,
          .assumed = fact.assumed,
          .note = fact.note};
}

template <class Value>
Fact<Value> read_fact_as(const JsonView& entry, const FactBounds& bounds, double units = 1) {
  return in_base_units<Value>(read_fact(entry, bounds), units);
}

template <class Value>
MaybeFact<Value> find_fact(const JsonView& object, std::string_view key, const FactBounds& bounds, double units = 1) {
  const std::optional<JsonView> entry = object.find(key);
  if (!entry) return std::nullopt;
  return read_fact_as<Value>(*entry, bounds, units);
}

// Text that must not be blank.
std::string read_text(const JsonView& entry);
std::string find_text(const JsonView& object, std::string_view key);  // empty when absent
std::vector<std::string> find_texts(const JsonView& object, std::string_view key);

// Index of the entry's text among `names`; InputError with the nearest otherwise.
size_t read_choice(const JsonView& entry, std::span<const std::string_view> names);

// InputError for a key outside the list, with the nearest one.
void reject_unknown_keys(const JsonView& object, std::span<const std::string> known);

}  // namespace foretoken
