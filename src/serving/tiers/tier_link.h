// One direction of the way to a tier: transfers go one after the other.
#pragma once

#include <algorithm>

#include "base/simulated_time.h"
#include "base/units.h"

namespace foretoken {

class TierLink {
 public:
  TierLink(BytesPerSecond bandwidth, Seconds latency)
      : bandwidth_(bandwidth.value()), latency_(to_picoseconds(latency)) {}

  // When so many bytes asked for at `now` would be through; an infinite bandwidth takes the latency alone.
  Picoseconds end_of(double bytes, Picoseconds now) const { return start(now) + length(bytes) + latency_; }
  // They are: those that come later wait. Times may go back a little, when replicas look ahead differently.
  Picoseconds move(double bytes, Picoseconds now) {
    free_ = start(now) + length(bytes);
    busy_ += length(bytes);
    return free_ + latency_;
  }
  Picoseconds start(Picoseconds now) const { return std::max(now, free_); }
  Picoseconds busy() const { return busy_; }

 private:
  Picoseconds length(double bytes) const { return to_picoseconds(Seconds(bytes / bandwidth_)); }

  double bandwidth_;
  Picoseconds latency_;
  Picoseconds free_ = 0, busy_ = 0;
};

}  // namespace foretoken
