#include "base/normal_distribution.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/error.h"
#include "base/portable_math.h"

namespace foretoken {
namespace {

constexpr double inverse_root_of_two_pi = 0.3989422804014327;

double standard_density(double z) {
  return inverse_root_of_two_pi * portable_exp(-0.5 * z * z);
}

// Above z >= 3: Laplace's continued fraction for Mills' ratio (Abramowitz and Stegun 26.2.14).
double far_tail(double z) {
  double fraction = z;
  for (int level = z < 4 ? 48 : 24; level >= 1; --level) fraction = z + level / fraction;
  return standard_density(z) / fraction;
}

// Between 0 and z < 3: the density times z + z^3/3 + z^5/(3 5) + ... (Abramowitz and Stegun 26.2.11).
double between_zero_and(double z) {
  double term = z, sum = z;
  for (int odd = 3; term > sum * 1e-17; odd += 2) sum += term *= z * z / odd;
  return standard_density(z) * sum;
}

struct WeightedPoint {
  double z = 0, weight = 0;
};

// The density of the largest, count x density(z) x below(z)^(count - 1), at equal distances: the trapezoidal rule
// converges exponentially for a bell that vanishes at both ends, and the narrowest here has a deviation of 0.2.
std::vector<WeightedPoint> points_of_largest(double count) {
  ensure(count > 0, "the largest of no values does not exist");
  constexpr double distance = 0.125, most = 8;
  std::vector<WeightedPoint> points;
  for (double z = most; z > -most; z -= distance) {
    const double weight = distance * count * standard_density(z) * largest_normal_below(z, count - 1);
    if (weight > 1e-13) points.push_back({.z = z, .weight = weight});
    if (weight < 1e-13 && !points.empty()) break;
  }
  return points;
}

}  // namespace

double normal_below(double z) {
  const double distance = std::abs(z);
  if (distance < 3) return z < 0 ? 0.5 - between_zero_and(distance) : 0.5 + between_zero_and(distance);
  const double tail = far_tail(distance);
  return z < 0 ? tail : 1 - tail;
}

double normal_quantile(double probability) {
  ensure(probability > 0 && probability < 1, "a quantile of the normal distribution is asked between 0 and 1");
  const double tail = std::min(probability, 1 - probability);
  // Abramowitz and Stegun 26.2.23: off by less than 4.5e-4.
  const double t = std::sqrt(-2 * portable_log(tail));
  double z = t - (2.515517 + t * (0.802853 + t * 0.010328)) / (1 + t * (1.432788 + t * (0.189269 + t * 0.001308)));
  z = -z;
  for (int step = 0; step < 3; ++step) z -= (normal_below(z) - tail) / standard_density(z);
  return probability < 0.5 ? z : -z;
}

double largest_normal_below(double z, double count) {
  ensure(count >= 0, "values are counted from 0");
  const double below = normal_below(z);
  return below > 0 ? portable_exp(count * portable_log(below)) : 0;
}

double mean_of_largest_normal(double count, const std::function<double(double)>& of) {
  double sum = 0;
  for (const WeightedPoint& point : points_of_largest(count)) sum += point.weight * of(point.z);
  return sum;
}

MeanAndDeviation largest_normal(double count) {
  if (count == 1) return {.mean = 0, .deviation = 1};
  double mean = 0, square = 0;
  for (const WeightedPoint& point : points_of_largest(count)) {
    mean += point.weight * point.z;
    square += point.weight * point.z * point.z;
  }
  return {.mean = mean, .deviation = std::sqrt(square - mean * mean)};
}

}  // namespace foretoken
