// The highest rate at which something holds, by as few trials as possible.
#pragma once

#include <functional>
#include <optional>

namespace foretoken {

struct CapacitySearch {
  double start = 1;          // first rate to try
  double lowest = 1e-3;      // below that there is none
  double highest = 1e12;     // never tried beyond
  double tolerance = 0.02;   // of the rate
  double first_step = 1.25;  // to the second rate where nothing tells better; smaller where `start` is a good guess
};

// What a trial at a rate tells.
struct TriedRate {
  bool holds = false;
  std::optional<double> reach = {};  // about so many times the rate would just hold; a guess
};

// 0 where it does not even hold at the lowest rate. It is taken to hold up to some rate and not beyond; where that is
// not so, the answer is one of the rates at which it turns. Trials that tell how far they are from the answer are
// followed; else rates rise or fall by `first_step` and more until the answer is enclosed, which is then bisected.
double highest_rate(const CapacitySearch& search, const std::function<TriedRate(double rate)>& trial);
double highest_rate(const CapacitySearch& search, const std::function<bool(double rate)>& holds);

}  // namespace foretoken
