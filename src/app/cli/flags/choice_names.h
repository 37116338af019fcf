// Values of an enum by the names users type, for flags that offer all of them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace foretoken {

template <size_t count>
std::vector<std::string> names_of(const std::string_view (&names)[count], std::vector<std::string> before = {}) {
  for (const std::string_view name : names) before.emplace_back(name);
  return before;
}

// The parser of flags has already refused any other name.
template <class Value, size_t count>
Value named(const std::string_view (&names)[count], std::string_view text) {
  for (size_t i = 0; i < count; ++i) {
    if (names[i] == text) return static_cast<Value>(i);
  }
  throw InternalError("the parser lets only known names through");
}

}  // namespace foretoken
