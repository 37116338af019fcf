#include "base/simulated_time.h"

#include <cmath>

#include "base/error.h"
#include "base/text.h"

namespace foretoken {

Picoseconds to_picoseconds(Seconds time) {
  if (!(time.value() >= 0 && time.value() <= longest_simulated_time.value())) {
    throw InputError({.source = "simulated time",
                      .value = number_text(time.value()) + " s",
                      .expected = "a time from 0 to 90 days"});
  }
  return std::llround(time.value() * picoseconds_per_second);
}

Picoseconds later(Picoseconds time, Picoseconds wait) {
  if (wait > end_of_time - time) {
    throw InputError({.source = "simulated time",
                      .value = number_text(to_seconds(time).value() + to_seconds(wait).value()) + " s",
                      .expected = "an end within 106 days, where the clock of the simulation ends"});
  }
  return time + wait;
}

}  // namespace foretoken
