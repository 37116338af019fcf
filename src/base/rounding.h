// Rounding for files that people read.
#pragma once

namespace foretoken {

// The nearest number that has so many significant digits, 1 to 17.
double rounded_to_digits(double value, int digits);

}  // namespace foretoken
