// Rates and times as people type them, with their unit.
#pragma once

#include <optional>
#include <string_view>

#include "base/units.h"

namespace foretoken {

// "450GB/s", "400 Gb/s", "400Gbps", "1.8TB/s": k, M, G or T (powers of 1000); B is bytes, b and bit are bits.
std::optional<BytesPerSecond> parse_rate(std::string_view text);

// "500ns", "1.5 us", "2ms", "1s", "300ps". Nothing for a negative one.
std::optional<Seconds> parse_duration(std::string_view text);

}  // namespace foretoken
