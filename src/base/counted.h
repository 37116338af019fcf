// Counts in sentences: "1 row", "3 rows".
#pragma once

#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>

namespace foretoken {

// "layer" -> "layers", "batch" -> "batches", "family" -> "families", "row of data" -> "rows of data".
std::string plural_of(std::string_view noun);

template <std::integral Count>
std::string counted(Count count, std::string_view noun) {
  return std::to_string(count) + " " + (count == 1 ? std::string(noun) : plural_of(noun));
}

}  // namespace foretoken
