// Devices and how many of them, as people write them.
#pragma once

#include <string>
#include <utility>

#include "base/range.h"
#include "hardware/catalogue.h"

namespace foretoken {

inline constexpr Range<int64_t> device_counts{.least = 1, .most = 100'000};

// What stands on either side of the last `sign`: "h100_sxm:8". InputError about `flag`, with `expected`.
std::pair<std::string, std::string> named_value(const char* flag, const std::string& text, char sign,
                                                const char* expected);

// Name and number of "h100_sxm:8", or "8xH100" and "h100x8" as people say it: "rtx4090" is one name, no number of "rt".
// A name alone means the devices of one node: 8 of "h100_sxm". InputError about --hardware.
std::pair<std::string, std::string> device_and_count(const std::string& text, const HardwareCatalogue& hardware);
// "h100_sxm": the number is that of a node.
bool has_no_count(const std::string& text, const HardwareCatalogue& hardware);

}  // namespace foretoken
