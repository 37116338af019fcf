#include "report/drawing/axis.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/portable_math.h"

namespace foretoken {

double power_of_ten(int n) {
  double power = 1;
  for (int i = 0; i < std::abs(n); ++i) power *= 10;
  return n < 0 ? 1 / power : power;
}

int decade_of(double value) {
  ensure(value > 0 && std::isfinite(value), "a decade is asked of a number above zero");
  int decade = static_cast<int>(std::floor(portable_log(value) / portable_log(10)));
  // The quotient of logarithms may miss a power of ten by the last bit.
  while (power_of_ten(decade + 1) <= value) ++decade;
  while (power_of_ten(decade) > value) --decade;
  return decade;
}

Axis Axis::linear(double least, double most, double from, double to) {
  ensure(least < most, "an axis goes from a smaller to a larger number");
  return {least, most, from, to, false};
}

Axis Axis::logarithmic(double least, double most, double from, double to) {
  ensure(least > 0 && least < most, "a logarithmic axis has positive ends");
  return {least, most, from, to, true};
}

double Axis::scaled(double value) const {
  return is_logarithmic_ ? portable_log(value) : value;
}

double Axis::position(double value) const {
  const double held = std::clamp(value, least_, most_);
  const double share = (scaled(held) - scaled(least_)) / (scaled(most_) - scaled(least_));
  return from_ + share * (to_ - from_);
}

double Axis::value(double position) const {
  const double share = (position - from_) / (to_ - from_);
  const double at = scaled(least_) + share * (scaled(most_) - scaled(least_));
  return is_logarithmic_ ? portable_exp(at) : at;
}

std::vector<double> Axis::ticks() const {
  std::vector<double> ticks;
  constexpr double slack = 1 + 1e-9;
  if (is_logarithmic_) {
    for (int n = decade_of(least_); power_of_ten(n) <= most_ * slack; ++n) {
      if (power_of_ten(n) * slack >= least_) ticks.push_back(power_of_ten(n));
    }
    return ticks;
  }
  constexpr double most_ticks = 10;
  double step = power_of_ten(decade_of((most_ - least_) / most_ticks));
  for (const double factor : {2.0, 2.5, 2.0, 2.0}) {  // 1, 2, 5, 10, 20 of the decade
    if ((most_ - least_) / step <= most_ticks) break;
    step *= factor;
  }
  const double first = std::ceil(least_ / step - 1e-9);
  for (int i = 0; (first + i) * step <= most_ + 1e-9 * step; ++i) ticks.push_back((first + i) * step + 0.0);  // no -0
  return ticks;
}

std::vector<double> Axis::small_ticks() const {
  std::vector<double> ticks;
  if (!is_logarithmic_) return ticks;
  for (int n = decade_of(least_); power_of_ten(n) <= most_; ++n) {
    for (int digit = 2; digit <= 9; ++digit) {
      if (holds(digit * power_of_ten(n))) ticks.push_back(digit * power_of_ten(n));
    }
  }
  return ticks;
}

}  // namespace foretoken
