#include "base/quantity_text.h"

#include "base/text.h"

namespace foretoken {
namespace {

struct NamedFactor {
  std::string_view name;
  double factor;
};

// What stands before a unit: digits, a point, an exponent; then the unit, perhaps after a space.
std::optional<double> number_before_unit(std::string_view text, std::string_view& unit) {
  const size_t split = text.find_last_of("0123456789.");
  if (split == std::string_view::npos) return std::nullopt;
  unit = text.substr(split + 1);
  while (unit.starts_with(' ')) unit.remove_prefix(1);
  return parse_number(text.substr(0, split + 1));
}

}  // namespace

std::optional<BytesPerSecond> parse_rate(std::string_view text) {
  static constexpr NamedFactor prefixes[] = {{"k", kilo}, {"K", kilo}, {"M", mega}, {"G", giga}, {"T", tera}};
  static constexpr NamedFactor units[] = {{"B/s", 1}, {"b/s", 0.125}, {"bit/s", 0.125}, {"bps", 0.125}, {"Bps", 1}};
  std::string_view unit;
  const std::optional<double> number = number_before_unit(text, unit);
  if (!number || *number < 0) return std::nullopt;
  double factor = *number;
  for (const NamedFactor& prefix : prefixes) {
    if (!unit.starts_with(prefix.name)) continue;
    factor *= prefix.factor;
    unit.remove_prefix(1);
    break;
  }
  for (const NamedFactor& known : units) {
    if (unit == known.name) return BytesPerSecond(factor * known.factor);
  }
  return std::nullopt;
}

std::optional<Seconds> parse_duration(std::string_view text) {
  // Divisors, because 1e-6 is not exact and 1e6 is.
  static constexpr NamedFactor units[] = {{"ps", 1e12}, {"ns", 1e9}, {"us", 1e6}, {"ms", 1e3}, {"s", 1}};
  std::string_view unit;
  const std::optional<double> number = number_before_unit(text, unit);
  if (!number || *number < 0) return std::nullopt;
  for (const NamedFactor& known : units) {
    if (unit == known.name) return Seconds(*number / known.factor);
  }
  return std::nullopt;
}

}  // namespace foretoken
