#include "base/range.h"

#include <algorithm>
#include <cmath>
#include <string_view>

#include <fmt/format.h>

#include "base/text.h"

namespace foretoken {
namespace {

template <class Number>
std::string text_with_bounds(std::string_view what, const Range<Number>& allowed, const std::string& least,
                             const std::string& most) {
  const bool below = allowed.least > std::numeric_limits<Number>::lowest();
  const bool above = allowed.most < std::numeric_limits<Number>::max();
  if (below && above) return fmt::format("{} between {} and {}", what, least, most);
  if (below) return fmt::format("{} of at least {}", what, least);
  if (above) return fmt::format("{} of at most {}", what, most);
  return std::string(what);
}

}  // namespace

std::string range_text(const Range<double>& allowed) {
  return text_with_bounds("a number", allowed, number_text(allowed.least), number_text(allowed.most));
}

std::string range_text(const Range<int64_t>& allowed) {
  return text_with_bounds("a whole number", allowed, fmt::format("{}", allowed.least), fmt::format("{}", allowed.most));
}

std::string range_text(const Range<int64_t>& allowed, double given) {
  if (!(std::abs(given) > static_cast<double>(largest_exact_integer))) return range_text(allowed);
  return range_text(
      Range<int64_t>{std::max(allowed.least, -largest_exact_integer), std::min(allowed.most, largest_exact_integer)});
}

}  // namespace foretoken
