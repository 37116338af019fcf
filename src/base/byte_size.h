// Sizes and rates as users type them with a unit.
#pragma once

#include <optional>
#include <string_view>

namespace foretoken {

// "200GiB" (2^30), "50GB" (10^9), "1.5TB", "4096" (bytes); a trailing "/s" only where `per_second`, and may be left
// out. Nothing for anything else, for numbers below zero and for those that are not finite.
std::optional<double> parse_bytes(std::string_view text, bool per_second = false);

}  // namespace foretoken
