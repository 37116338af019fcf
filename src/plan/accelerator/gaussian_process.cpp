#include "plan/accelerator/gaussian_process.h"

#include <cmath>
#include <numbers>

#include "base/error.h"
#include "base/normal_distribution.h"
#include "base/portable_math.h"
#include "base/statistics.h"

namespace foretoken {

GaussianProcess::GaussianProcess(std::vector<std::vector<double>> points, std::vector<double> values,
                                 std::vector<double> lengths, double noise)
    : points_(std::move(points)),
      values_(std::move(values)),
      lengths_(std::move(lengths)),
      noise_(noise),
      mean_(mean(values_)),
      factor_(factor()) {
  ensure(points_.size() == values_.size(), "each point has a value");
  const double deviation = standard_deviation(values_);
  if (deviation > 0) scale_ = deviation;
  std::vector<double> standardised;
  for (const double value : values_) standardised.push_back((value - mean_) / scale_);
  weights_ = factor_.solve(standardised);
  log_likelihood_ = -0.5 * (dot(standardised, weights_) + factor_.log_determinant());
}

double GaussianProcess::covariance(std::span<const double> a, std::span<const double> b) const {
  double square = 0;
  for (size_t k = 0; k < a.size(); ++k) {
    const double difference = (a[k] - b[k]) / lengths_[k];
    square += difference * difference;
  }
  const double distance = std::sqrt(5 * square);
  return (1 + distance + distance * distance / 3) * portable_exp(-distance);
}

Cholesky GaussianProcess::factor() const {
  const size_t size = points_.size();
  std::vector<double> matrix(size * size);
  for (size_t i = 0; i < size; ++i) {
    for (size_t j = 0; j < i; ++j) matrix[i * size + j] = covariance(points_[i], points_[j]);
    matrix[i * size + i] = 1 + noise_;
  }
  return Cholesky(std::move(matrix), size);
}

GaussianProcess::Guess GaussianProcess::guess(std::span<const double> point) const {
  std::vector<double> row;
  row.reserve(points_.size());
  for (const std::vector<double>& known : points_) row.push_back(covariance(known, point));
  const std::vector<double> half = factor_.half_solve(row);
  const double variance = 1 - dot(half, half);
  return {.mean = mean_ + scale_ * dot(row, weights_), .deviation = scale_ * std::sqrt(std::max(0.0, variance))};
}

GaussianProcess GaussianProcess::believing(const std::vector<double>& point) const {
  std::vector<std::vector<double>> points = points_;
  std::vector<double> values = values_;
  values.push_back(guess(point).mean);
  points.push_back(point);
  return {std::move(points), std::move(values), lengths_, noise_};
}

GaussianProcess with_better_lengths(const std::vector<std::vector<double>>& points, const std::vector<double>& values,
                                    std::vector<double> lengths, double noise) {
  constexpr double shortest = 0.1, longest = 20;  // knobs run from 0 to 1
  GaussianProcess best(points, values, lengths, noise);
  for (size_t k = 0; k < lengths.size(); ++k) {
    const double now = lengths[k];
    for (const double tried : {now / 2, now * 2}) {
      if (tried < shortest || tried > longest) continue;
      std::vector<double> changed(best.lengths().begin(), best.lengths().end());
      changed[k] = tried;
      GaussianProcess other(points, values, std::move(changed), noise);
      if (other.log_likelihood() > best.log_likelihood()) best = std::move(other);
    }
  }
  return best;
}

double expected_improvement(const GaussianProcess::Guess& guess, double best) {
  const double gain = best - guess.mean;
  if (guess.deviation <= 0) return std::max(0.0, gain);
  const double z = gain / guess.deviation;
  const double density = portable_exp(-0.5 * z * z) / std::sqrt(2 * std::numbers::pi);
  return gain * normal_below(z) + guess.deviation * density;
}

}  // namespace foretoken
