#include "base/text.h"

#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <span>

#include <fmt/format.h>

namespace foretoken {
namespace {

template <class Number>
std::optional<Number> parse_whole(std::string_view text) {
  if (!text.empty() && text.front() == '+') text.remove_prefix(1);
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// Three significant digits without an exponent for 0.1 <= |value| < 1e5.
std::string three_digits(double value) {
  const double size = std::abs(value);
  if (size >= 99.95) return fmt::format("{:.0f}", value);
  if (size >= 9.995) return fmt::format("{:.1f}", value);
  return fmt::format("{:.2f}", value);
}

struct Prefix {
  double factor;
  std::string_view text;
};

std::string with_prefix(double value, std::span<const Prefix> largest_first, std::string_view unit) {
  for (const Prefix& prefix : largest_first) {
    // 0.9995: what would print as 1000 of the smaller prefix prints as 1.00 of this one.
    if (std::abs(value) >= 0.9995 * prefix.factor) {
      return fmt::format("{} {}{}", three_digits(value / prefix.factor), prefix.text, unit);
    }
  }
  const Prefix& smallest = largest_first.back();
  return fmt::format("{} {}{}", three_digits(value / smallest.factor), smallest.text, unit);
}

constexpr Prefix decimal[] = {{1e18, "E"}, {1e15, "P"}, {1e12, "T"}, {1e9, "G"}, {1e6, "M"}, {1e3, "k"}, {1, ""}};

}  // namespace

std::optional<double> parse_number(std::string_view text) {
  const std::optional<double> value = parse_whole<double>(text);
  return value && std::isfinite(*value) ? value : std::nullopt;
}

std::optional<int64_t> parse_integer(std::string_view text) { return parse_whole<int64_t>(text); }

std::string number_text(double value) {
  std::array<char, 32> buffer{};
  const auto result = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value);
  return {buffer.data(), result.ptr};
}

std::string duration_text(double seconds) {
  constexpr Prefix prefixes[] = {{1, ""}, {1e-3, "m"}, {1e-6, "u"}, {1e-9, "n"}};
  return seconds == 0 ? "0 s" : with_prefix(seconds, prefixes, "s");
}

std::string bytes_text(double bytes) { return with_prefix(bytes, decimal, "B"); }

std::string count_text(double count) {
  constexpr Prefix prefixes[] = {{1e12, "T"}, {1e9, "B"}, {1e6, "M"}, {1e3, "k"}};
  if (std::abs(count) < 999.5) return fmt::format("{:g}", count);
  return with_prefix(count, prefixes, "");
}

std::string rate_text(double per_second, std::string_view unit) { return with_prefix(per_second, decimal, unit); }

std::string lower_case(std::string_view text) {
  std::string result(text);
  for (char& c : result) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return result;
}

bool starts_with_ignoring_case(std::string_view text, std::string_view prefix) {
  return text.size() >= prefix.size() && lower_case(text.substr(0, prefix.size())) == lower_case(prefix);
}

}  // namespace foretoken
