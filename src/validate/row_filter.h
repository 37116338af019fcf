// Which rows a validation looks at.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

namespace foretoken {

// An empty filter lets all values through.
inline bool is_wanted(const std::vector<std::string>& filter, std::string_view value) {
  return filter.empty() || std::find(filter.begin(), filter.end(), value) != filter.end();
}

}  // namespace foretoken
