// Wrong requests to one part of the network: every message of a part names the same source.
#pragma once

#include <string>
#include <string_view>

#include "base/error.h"

namespace foretoken {

struct Refusal {
  std::string_view source;

  [[noreturn]] void operator()(std::string_view path, std::string_view value, std::string_view expected) const {
    throw InputError({.source = std::string(source),
                      .path = std::string(path),
                      .value = std::string(value),
                      .expected = std::string(expected)});
  }
};

inline constexpr Refusal refuse_collective{"collective"};

}  // namespace foretoken
