// Amounts of money as people write them.
#pragma once

#include <optional>
#include <string_view>

namespace foretoken {

// "250000", "$250k", "$2.5M": USD. Nothing for other texts.
std::optional<double> parse_usd(std::string_view text);
// "1.9", "$1.9", "1.9/h", "$1.9/hour", "$1.9/hr": USD for an hour. Nothing for other texts.
std::optional<double> parse_usd_per_hour(std::string_view text);
// The same, and "$20000/month" or "$500/day": what that is an hour (a month has 730 hours).
std::optional<double> parse_usd_per_time(std::string_view text);

}  // namespace foretoken
