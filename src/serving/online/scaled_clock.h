// Wall time and simulated time of an online run.
#pragma once

#include <chrono>

#include "base/simulated_time.h"

namespace foretoken {

using WallTime = std::chrono::steady_clock::time_point;

// Simulated time begins at `start` and passes `scale` times as fast as the wall's.
class ScaledClock {
 public:
  ScaledClock(WallTime start, double scale) : start_(start), scale_(scale) {}

  Picoseconds simulated(WallTime wall) const {
    const double seconds = std::chrono::duration<double>(wall - start_).count() * scale_;
    return seconds <= 0 ? 0 : to_picoseconds(Seconds(seconds));
  }
  // When simulated time has passed `when`.
  WallTime wall(Picoseconds when) const {
    const double nanoseconds = static_cast<double>(when) / 1000 / scale_;
    return start_ + std::chrono::nanoseconds(static_cast<int64_t>(nanoseconds) + 1);
  }
  double scale() const { return scale_; }

 private:
  WallTime start_;
  double scale_;
};

}  // namespace foretoken
