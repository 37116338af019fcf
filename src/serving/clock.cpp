#include "serving/clock.h"

#include <cmath>

#include "base/error.h"

namespace foretoken {

Picoseconds picoseconds(double seconds) {
  ensure(std::abs(seconds) < 9.2e6, "simulated time stays within 106 days");
  return std::llround(seconds * 1e12);
}

double seconds(Picoseconds time) {
  return static_cast<double>(time) / 1e12;
}

}  // namespace foretoken
