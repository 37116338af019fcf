// The clock of simulators: whole picoseconds, so that equal moments compare equal on every machine.
#pragma once

#include <cstdint>
#include <limits>

#include "base/units.h"

namespace foretoken {

using Picoseconds = int64_t;

inline constexpr double picoseconds_per_second = 1e12;
inline constexpr Picoseconds end_of_time = std::numeric_limits<Picoseconds>::max();

inline constexpr Seconds longest_simulated_time(90.0 * 86400);  // the clock ends after 106 days

// Rounded to the nearest. InputError for a negative time, or one beyond the longest.
Picoseconds to_picoseconds(Seconds time);

// InputError when the clock ends before.
Picoseconds later(Picoseconds time, Picoseconds wait);

constexpr Seconds to_seconds(Picoseconds time) {
  return Seconds(static_cast<double>(time) / picoseconds_per_second);
}

}  // namespace foretoken
