// The highest rate at which something holds, by bisection.
#pragma once

#include <functional>

namespace foretoken {

struct CapacitySearch {
  double start = 1;          // first rate to try
  double lowest = 1e-3;      // below that there is none
  double highest = 1e12;     // never tried beyond
  double tolerance = 0.02;   // of the rate
  double first_step = 1.25;  // to the second rate; smaller where `start` is a good guess
};

// 0 where it does not even hold at the lowest rate. `holds` is taken to be true up to some rate and false beyond; where
// it is not, the answer is one of the rates at which it turns. Rates rise or fall by `first_step` and more until the
// answer is enclosed.
double highest_rate(const CapacitySearch& search, const std::function<bool(double rate)>& holds);

}  // namespace foretoken
