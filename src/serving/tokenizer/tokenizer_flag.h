// A switch in a tokenizer file.
#pragma once

#include <string_view>

#include "base/json.h"

namespace foretoken {

inline bool flag_at(const JsonView& object, std::string_view key, bool otherwise = false) {
  const auto value = object.find(key);
  return value ? value->boolean() : otherwise;
}

}  // namespace foretoken
