#include "kernel/fit/fit_smooth_residual.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "base/error.h"
#include "kernel/fewshot/cholesky.h"

namespace foretoken {
namespace {

struct Smoothness {
  double length = 3;  // of all features, in their standard deviations
  double across = 0.5;
  double noise = 0.1;           // variance, over that of the process
  std::vector<double> stretch;  // of each feature: more = it matters more
};

class SmoothFitter {
 public:
  SmoothFitter(std::span<const float> values, size_t features, size_t group_feature, std::span<const float> targets)
      : rows_(targets.size()), group_feature_(group_feature), targets_(targets.begin(), targets.end()) {
    for (size_t row = 0; row < rows_; ++row) groups_.push_back(values[row * features + group_feature]);
    for (size_t f = 0; f < features; ++f) {
      if (f == group_feature) continue;
      double sum = 0, squares = 0;
      for (size_t row = 0; row < rows_; ++row) sum += values[row * features + f];
      const double middle = sum / static_cast<double>(rows_);
      for (size_t row = 0; row < rows_; ++row) {
        const double apart = values[row * features + f] - middle;
        squares += apart * apart;
      }
      const double deviation = std::sqrt(squares / static_cast<double>(rows_));
      if (!(deviation > 1e-6)) continue;
      used_.push_back(static_cast<uint8_t>(f));
      deviations_.push_back(deviation);
    }
    for (const uint8_t f : used_) {
      std::vector<float>& column = columns_.emplace_back();
      for (size_t row = 0; row < rows_; ++row) column.push_back(values[row * features + f]);
    }
  }

  // One setting after the other, the best of its candidates; and once more, since they depend on one another.
  Smoothness best_settings() const {
    Smoothness best;
    best.stretch.assign(used_.size(), 1);
    double least = left_out_error(best);
    const auto keep_better = [&](Smoothness other) {
      const double error = left_out_error(other);
      if (error >= least) return;
      least = error;
      best = std::move(other);
    };
    const auto tune_common = [&] {
      const Smoothness from = best;
      for (const double factor : {0.25, 0.5, 2.0, 4.0}) {
        Smoothness other = from;
        other.length *= factor;
        keep_better(std::move(other));
      }
      for (const double noise : {0.003, 0.01, 0.03, 0.3, 1.0}) {
        Smoothness other = best;
        other.noise = noise;
        keep_better(std::move(other));
      }
      for (const double across : {0.0, 0.25, 0.75, 0.95}) {
        Smoothness other = best;
        other.across = across;
        keep_better(std::move(other));
      }
    };
    tune_common();
    for (size_t f = 0; f < used_.size(); ++f) {
      const Smoothness from = best;
      for (const double factor : {0.0, 0.4, 2.5}) {
        Smoothness other = from;
        other.stretch[f] *= factor;
        keep_better(std::move(other));
      }
    }
    tune_common();
    return best;
  }

  SmoothResidual process(const Smoothness& settings) const {
    SmoothResidual::Parts parts{.group_feature = group_feature_, .across = static_cast<float>(settings.across)};
    std::vector<size_t> kept;
    for (size_t f = 0; f < used_.size(); ++f) {
      if (settings.stretch[f] == 0) continue;
      kept.push_back(f);
      parts.used.push_back(used_[f]);
      parts.inverse_lengths.push_back(static_cast<float>(scale_of(settings, f)));
    }
    parts.groups = groups_;
    for (const double weight : Cholesky(covariance(settings), rows_).solve(targets_))
      parts.weights.push_back(static_cast<float>(weight));
    for (size_t row = 0; row < rows_; ++row) {
      for (size_t k = 0; k < kept.size(); ++k)
        parts.places.push_back(columns_[kept[k]][row] * parts.inverse_lengths[k]);
    }
    return SmoothResidual(std::move(parts));
  }

 private:
  double scale_of(const Smoothness& settings, size_t f) const {
    return settings.stretch[f] / (settings.length * deviations_[f]);
  }

  std::vector<double> covariance(const Smoothness& settings) const {
    std::vector<double> matrix(rows_ * rows_);
    for (size_t f = 0; f < used_.size(); ++f) {
      const double scale = scale_of(settings, f);
      if (scale == 0) continue;
      const std::vector<float>& column = columns_[f];
      for (size_t i = 0; i < rows_; ++i) {
        for (size_t j = 0; j < i; ++j) {
          const double apart = scale * (column[i] - column[j]);
          matrix[i * rows_ + j] += apart * apart;
        }
      }
    }
    for (size_t i = 0; i < rows_; ++i) {
      for (size_t j = 0; j < i; ++j) {
        double& entry = matrix[i * rows_ + j];
        entry = (groups_[i] == groups_[j] ? 1 : settings.across) * SmoothResidual::correlation(entry);
      }
      matrix[i * rows_ + i] = 1 + settings.noise;
    }
    return matrix;
  }

  // Mean error on each row by a process through all others: its weight over its entry on the diagonal of the inverse.
  double left_out_error(const Smoothness& settings) const {
    const Cholesky factor(covariance(settings), rows_);
    const std::vector<double> weights = factor.solve(targets_), diagonal = factor.inverse_diagonal();
    double sum = 0;
    for (size_t row = 0; row < rows_; ++row) sum += std::abs(weights[row] / diagonal[row]);
    return sum;
  }

  size_t rows_;
  size_t group_feature_;
  std::vector<double> targets_;
  std::vector<float> groups_;
  std::vector<uint8_t> used_;
  std::vector<double> deviations_;
  std::vector<std::vector<float>> columns_;
};

}  // namespace

SmoothResidual fit_smooth_residual(std::span<const float> values, size_t features, size_t group_feature,
                                   std::span<const float> targets) {
  ensure(group_feature < features && values.size() == targets.size() * features, "one row of features per target");
  if (targets.empty()) return {};
  const SmoothFitter fitter(values, features, group_feature, targets);
  return fitter.process(fitter.best_settings());
}

}  // namespace foretoken
