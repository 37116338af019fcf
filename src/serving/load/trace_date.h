// Dates as traces write them: "2023-11-16 18:15:46.6805900", "2024-05-10T00:00:00.009930+00:00".
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace foretoken {

// A moment in two parts, since picoseconds since 1970 do not fit into 64 bits.
struct DateTime {
  int64_t seconds = 0;  // since 1970-01-01 00:00 UTC, proleptic Gregorian calendar
  int64_t picoseconds = 0;
};

// Nothing for any other text. Without an offset the time is taken as UTC; digits beyond 12 are dropped.
std::optional<DateTime> parse_date_time(std::string_view text);

}  // namespace foretoken
