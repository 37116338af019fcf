// Quantities as types, so that bytes cannot be added to seconds. All are kept in base units: s, B, FLOP, J, W, Hz.
// GB is 10^9 bytes, GiB is 2^30; link and memory bandwidths are one direction.
#pragma once

#include <compare>

namespace foretoken {

template <class Unit>
class Quantity {
 public:
  constexpr Quantity() = default;
  constexpr explicit Quantity(double in_base_units) : value_(in_base_units) {}
  constexpr double value() const { return value_; }

  constexpr auto operator<=>(const Quantity&) const = default;
  constexpr Quantity& operator+=(Quantity other) { return value_ += other.value_, *this; }
  constexpr Quantity& operator-=(Quantity other) { return value_ -= other.value_, *this; }
  friend constexpr Quantity operator+(Quantity a, Quantity b) { return Quantity(a.value_ + b.value_); }
  friend constexpr Quantity operator-(Quantity a, Quantity b) { return Quantity(a.value_ - b.value_); }
  friend constexpr Quantity operator*(Quantity a, double factor) { return Quantity(a.value_ * factor); }
  friend constexpr Quantity operator*(double factor, Quantity a) { return Quantity(a.value_ * factor); }
  friend constexpr Quantity operator/(Quantity a, double divisor) { return Quantity(a.value_ / divisor); }
  friend constexpr double operator/(Quantity a, Quantity b) { return a.value_ / b.value_; }

 private:
  double value_ = 0;
};

using Seconds = Quantity<struct SecondsUnit>;
using Bytes = Quantity<struct BytesUnit>;
using Flops = Quantity<struct FlopsUnit>;
using Joules = Quantity<struct JoulesUnit>;
using Watts = Quantity<struct WattsUnit>;
using Hertz = Quantity<struct HertzUnit>;
using BytesPerSecond = Quantity<struct BytesPerSecondUnit>;
using FlopsPerSecond = Quantity<struct FlopsPerSecondUnit>;

constexpr Seconds operator/(Bytes size, BytesPerSecond rate) {
  return Seconds(size.value() / rate.value());
}
constexpr Seconds operator/(Flops work, FlopsPerSecond rate) {
  return Seconds(work.value() / rate.value());
}
constexpr BytesPerSecond operator/(Bytes size, Seconds time) {
  return BytesPerSecond(size.value() / time.value());
}
constexpr FlopsPerSecond operator/(Flops work, Seconds time) {
  return FlopsPerSecond(work.value() / time.value());
}
constexpr Bytes operator*(BytesPerSecond rate, Seconds time) {
  return Bytes(rate.value() * time.value());
}
constexpr Flops operator*(FlopsPerSecond rate, Seconds time) {
  return Flops(rate.value() * time.value());
}
constexpr Joules operator*(Watts power, Seconds time) {
  return Joules(power.value() * time.value());
}
constexpr Watts operator/(Joules energy, Seconds time) {
  return Watts(energy.value() / time.value());
}

inline constexpr double kilo = 1e3, mega = 1e6, giga = 1e9, tera = 1e12;
inline constexpr double kibi = 1024, mebi = kibi * 1024, gibi = mebi * 1024;

constexpr Seconds microseconds(double us) {
  return Seconds(us * 1e-6);
}
constexpr Seconds milliseconds(double ms) {
  return Seconds(ms * 1e-3);
}
constexpr Bytes gigabytes(double gb) {
  return Bytes(gb * giga);
}
constexpr Bytes gibibytes(double gib) {
  return Bytes(gib * gibi);
}

inline constexpr double seconds_per_hour = 3600;
inline constexpr double seconds_per_day = 24 * seconds_per_hour;

}  // namespace foretoken
