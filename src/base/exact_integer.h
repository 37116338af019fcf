// How far a double holds every whole number.
#pragma once

#include <cstdint>

namespace foretoken {

inline constexpr int64_t largest_exact_integer = int64_t{1} << 53;

}  // namespace foretoken
