// An axis of a figure: numbers to positions and back, and where to put ticks.
#pragma once

#include <string_view>
#include <vector>

namespace foretoken {

inline constexpr std::string_view grid_colour = "#e4e7eb";

class Axis {
 public:
  // `least` lies at position `from`, `most` at `to`; either may be the larger position. Logarithmic: both above zero.
  static Axis linear(double least, double most, double from, double to);
  static Axis logarithmic(double least, double most, double from, double to);

  double position(double value) const;  // held within the axis
  double value(double position) const;
  bool holds(double value) const { return value >= least_ && value <= most_; }
  double least() const { return least_; }
  double most() const { return most_; }

  // Linear: at most ten multiples of 1, 2 or 5 times a power of ten. Logarithmic: powers of ten.
  std::vector<double> ticks() const;
  // Logarithmic: 2 to 9 times the powers of ten. Linear: none.
  std::vector<double> small_ticks() const;

 private:
  Axis(double least, double most, double from, double to, bool is_logarithmic)
      : least_(least), most_(most), from_(from), to_(to), is_logarithmic_(is_logarithmic) {}
  double scaled(double value) const;
  double least_, most_, from_, to_;
  bool is_logarithmic_;
};

// 10^n, exact where a double can be.
double power_of_ten(int n);
int decade_of(double value);  // floor(log10(value)), value > 0

}  // namespace foretoken
