// Curves through measured points: what fits and predictions interpolate.
#pragma once

#include <span>
#include <vector>

namespace foretoken {

// x strictly increasing.
struct Curve {
  std::vector<double> x, y;
};

// Monotone cubic between points (Fritsch and Carlson, "Monotone piecewise cubic interpolation", 1980, with the weighted
// harmonic mean of slopes): no overshoot at a jump from one protocol to another. Beyond the last point its value;
// before the first the median of the first three, whose noise a single point would carry along. A curve without points
// is 0.
double smooth_value(const Curve& curve, double x);

// Straight lines between points, and on with the given slope beyond the first and the last.
double linear_value(const Curve& curve, double x, double outer_slope);

// Points that lie more than `height` above the median of their four neighbours, and above both next ones, are replaced
// by that median: a hiccup of the host is not part of a curve. Points from `first_kept` on are left alone.
void remove_spikes(Curve& curve, double height, size_t first_kept);

// The fewest points (first and last included) from which smooth_value gives every point back within `tolerance`: drops
// one after the other as long as that holds.
Curve thinned(const Curve& curve, double tolerance);

}  // namespace foretoken
