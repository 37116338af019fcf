#include "base/day.h"

#include <vector>

#include "base/text.h"

namespace foretoken {

bool is_day(std::string_view text) {
  const std::vector<std::string_view> parts = split(text, "-");
  if (text.size() != 10 || parts.size() != 3 || parts[0].size() != 4 || parts[1].size() != 2) return false;
  const auto year = parse_integer(parts[0]), month = parse_integer(parts[1]), day = parse_integer(parts[2]);
  return year && month && day && *year >= 1 && *month >= 1 && *month <= 12 && *day >= 1 && *day <= 31;
}

}  // namespace foretoken
