// A closed range of allowed numbers, as readers of files are given it.
#pragma once

#include <cstdint>
#include <limits>
#include <string>

#include "base/exact_integer.h"

namespace foretoken {

template <class Number>
struct Range {
  Number least = std::numeric_limits<Number>::lowest();
  Number most = std::numeric_limits<Number>::max();

  bool holds(Number value) const { return value >= least && value <= most; }  // never a NaN
};

// For complaints: "a number between 1 and 8", "a whole number of at least 0".
std::string range_text(const Range<double>& allowed);
std::string range_text(const Range<int64_t>& allowed);

// The same about a number given as text with a point or exponent; names a bound where it is too large to be exact
// (1e30).
std::string range_text(const Range<int64_t>& allowed, double given);

}  // namespace foretoken
