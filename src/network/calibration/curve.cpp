#include "network/calibration/curve.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/statistics.h"

namespace foretoken {
namespace {

double slope(const Curve& curve, size_t i) {
  return (curve.y[i + 1] - curve.y[i]) / (curve.x[i + 1] - curve.x[i]);
}

double tangent(const Curve& curve, size_t i) {
  const size_t last = curve.x.size() - 1;
  if (i == 0) return slope(curve, 0);
  if (i == last) return slope(curve, last - 1);
  const double before = slope(curve, i - 1), after = slope(curve, i);
  if (before * after <= 0) return 0;
  const double left = curve.x[i] - curve.x[i - 1], right = curve.x[i + 1] - curve.x[i];
  const double left_weight = 2 * right + left, right_weight = right + 2 * left;
  return (left_weight + right_weight) / (left_weight / before + right_weight / after);
}

// The piece that holds x, which lies within the curve.
size_t piece_of(const Curve& curve, double x) {
  const auto above = std::upper_bound(curve.x.begin() + 1, curve.x.end() - 1, x);
  return static_cast<size_t>(above - curve.x.begin()) - 1;
}

}  // namespace

double smooth_value(const Curve& curve, double x) {
  ensure(curve.x.size() == curve.y.size(), "a curve has a value at every point");
  if (curve.x.empty()) return 0;
  if (x < curve.x.front()) {
    const size_t count = std::min<size_t>(3, curve.y.size());
    return quantile({curve.y.begin(), curve.y.begin() + static_cast<std::ptrdiff_t>(count)}, 0.5);
  }
  if (x >= curve.x.back()) return curve.y.back();
  const size_t i = piece_of(curve, x);
  const double width = curve.x[i + 1] - curve.x[i];
  const double t = (x - curve.x[i]) / width, squared = t * t, cubed = squared * t;
  return (2 * cubed - 3 * squared + 1) * curve.y[i] + (cubed - 2 * squared + t) * width * tangent(curve, i) +
         (3 * squared - 2 * cubed) * curve.y[i + 1] + (cubed - squared) * width * tangent(curve, i + 1);
}

double linear_value(const Curve& curve, double x, double outer_slope) {
  ensure(!curve.x.empty() && curve.x.size() == curve.y.size(), "a curve has a value at every point");
  if (x <= curve.x.front()) return curve.y.front() + outer_slope * (x - curve.x.front());
  if (x >= curve.x.back()) return curve.y.back() + outer_slope * (x - curve.x.back());
  const size_t i = piece_of(curve, x);
  return curve.y[i] + slope(curve, i) * (x - curve.x[i]);
}

void remove_spikes(Curve& curve, double height, size_t first_kept) {
  const std::vector<double> before = curve.y;
  for (size_t i = 0; i < std::min(first_kept, before.size()); ++i) {
    std::vector<double> neighbours;
    for (const int offset : {-2, -1, 1, 2}) {
      const auto at = static_cast<std::ptrdiff_t>(i) + offset;
      if (at >= 0 && at < static_cast<std::ptrdiff_t>(before.size()))
        neighbours.push_back(before[static_cast<size_t>(at)]);
    }
    if (neighbours.size() < 2) continue;
    const double usual = quantile(neighbours, 0.5);
    const bool is_peak = i + 1 >= before.size() || before[i] > before[i + 1];
    if (is_peak && before[i] > usual + height) curve.y[i] = usual;
  }
}

Curve thinned(const Curve& curve, double tolerance) {
  Curve kept = curve;
  for (size_t i = 1; i + 1 < kept.x.size();) {
    Curve without = kept;
    without.x.erase(without.x.begin() + static_cast<std::ptrdiff_t>(i));
    without.y.erase(without.y.begin() + static_cast<std::ptrdiff_t>(i));
    bool holds = true;
    for (size_t k = 0; k < curve.x.size() && holds; ++k) {
      holds = std::abs(smooth_value(without, curve.x[k]) - curve.y[k]) <= tolerance;
    }
    if (holds) {
      kept = std::move(without);
    } else {
      ++i;
    }
  }
  return kept;
}

}  // namespace foretoken
