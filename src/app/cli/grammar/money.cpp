#include "app/cli/grammar/money.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "base/text.h"

namespace foretoken {
namespace {

constexpr double hours_per_day = 24, hours_per_month = 730;

constexpr std::array<std::pair<std::string_view, double>, 8> hours_of_unit = {{{"/h", 1},
                                                                               {"/hr", 1},
                                                                               {"/hour", 1},
                                                                               {"/day", hours_per_day},
                                                                               {"/d", hours_per_day},
                                                                               {"/mo", hours_per_month},
                                                                               {"/month", hours_per_month},
                                                                               {"", 1}}};

// "20k" is 20,000, "2M" two million.
std::optional<double> parse_amount(std::string_view text) {
  double unit = 1;
  if (text.ends_with('k') || text.ends_with('K')) unit = 1e3;
  if (text.ends_with('m') || text.ends_with('M')) unit = 1e6;
  if (unit > 1) text.remove_suffix(1);
  const std::optional<double> number = parse_number(text);
  return number ? std::optional(*number * unit) : std::nullopt;
}

}  // namespace

std::optional<double> parse_usd(std::string_view text) {
  if (text.starts_with('$')) text.remove_prefix(1);
  return parse_amount(text);
}

std::optional<double> parse_usd_per_time(std::string_view text) {
  if (text.starts_with('$')) text.remove_prefix(1);
  const size_t slash = std::min(text.find('/'), text.size());
  const std::string unit = lower_case(std::string(text.substr(slash)));
  for (const auto& [name, hours] : hours_of_unit) {
    if (unit != name) continue;
    const std::optional<double> number = parse_amount(text.substr(0, slash));
    return number ? std::optional(*number / hours) : std::nullopt;
  }
  return std::nullopt;
}

std::optional<double> parse_usd_per_hour(std::string_view text) {
  const size_t slash = std::min(text.find('/'), text.size());
  const bool is_hour = slash == text.size() || (slash + 1 < text.size() && lower_case(text[slash + 1]) == 'h');
  return is_hour ? parse_usd_per_time(text) : std::nullopt;
}

}  // namespace foretoken
