// Numbers to text and back, the same bytes on every machine and locale.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace foretoken {

// The whole of `text` as a number; nothing for anything else, including nan, inf and trailing characters.
std::optional<double> parse_number(std::string_view text);
std::optional<int64_t> parse_integer(std::string_view text);

// Shortest text that reads back as the same number ("0.1", "1e+30").
std::string number_text(double value);

// For people: three significant digits with a unit prefix that fits.
std::string duration_text(double seconds);        // "1.23 ms", "45.6 us"
std::string bytes_text(double bytes);             // "1.41 GB" (10^9)
std::string count_text(double count);             // "70.6 B" (10^9), "1.2 M"
std::string rate_text(double per_second, std::string_view unit);  // "989 TFLOP/s" from 9.89e14, "FLOP/s"

std::string lower_case(std::string_view text);
bool starts_with_ignoring_case(std::string_view text, std::string_view prefix);

}  // namespace foretoken
