#include "kernel/fewshot/measure_next.h"

#include <algorithm>

namespace foretoken {
namespace {

// Covariances between candidates, by rows; lowered by each timing that is taken to be known.
class DesignCovariance {
 public:
  DesignCovariance(std::span<const Projection> projections, const AdaptedDevice::Levels& levels)
      : size_(projections.size()), noise_(levels.noise), values_(size_ * size_) {
    for (size_t i = 0; i < size_; ++i) {
      for (size_t j = 0; j <= i; ++j) {
        values_[i * size_ + j] = values_[j * size_ + i] =
            prior_covariance(projections[i], projections[j], levels.spread, levels.residual);
      }
    }
  }

  // What a timing of `candidate` takes off the sum of variances of the first `wanted`.
  double gain(size_t candidate, size_t wanted) const {
    const double* row = values_.data() + candidate * size_;
    return dot({row, wanted}, {row, wanted}) / (row[candidate] + noise_);
  }

  void learn(size_t candidate) {
    const std::vector<double> row(values_.begin() + static_cast<std::ptrdiff_t>(candidate * size_),
                                  values_.begin() + static_cast<std::ptrdiff_t>((candidate + 1) * size_));
    const double variance = row[candidate] + noise_;
    for (size_t i = 0; i < size_; ++i) {
      const double share = row[i] / variance;
      for (size_t j = 0; j < size_; ++j) values_[i * size_ + j] -= share * row[j];
    }
  }

 private:
  size_t size_;
  double noise_;
  std::vector<double> values_;
};

std::vector<size_t> choose(DesignCovariance covariance, size_t candidates, size_t count) {
  std::vector<size_t> chosen;
  std::vector<bool> taken(candidates);
  while (chosen.size() < std::min(count, candidates)) {
    size_t best = candidates;
    double most = 0;
    for (size_t c = 0; c < candidates; ++c) {
      if (taken[c]) continue;
      const double gain = covariance.gain(c, candidates);
      if (best == candidates || gain > most) {
        best = c;
        most = gain;
      }
    }
    taken[best] = true;
    chosen.push_back(best);
    covariance.learn(best);
  }
  return chosen;
}

std::vector<Projection> project_all(const PriorBasis& basis, std::span<const std::vector<double>> candidates) {
  std::vector<Projection> projections;
  for (const std::vector<double>& features : candidates) projections.push_back(basis.project(features));
  return projections;
}

}  // namespace

std::vector<size_t> measure_next(const AdaptedDevice& device, std::span<const std::vector<double>> candidates,
                                 size_t count) {
  std::vector<Projection> projections = project_all(device.basis(), candidates);
  for (const Projection& timed : device.timings().projections) projections.push_back(timed);
  DesignCovariance covariance(projections, device.squared_levels());
  for (size_t t = candidates.size(); t < projections.size(); ++t) covariance.learn(t);
  return choose(std::move(covariance), candidates.size(), count);
}

std::vector<size_t> measure_first(const LatencyPrior& prior, std::span<const std::vector<double>> candidates,
                                  size_t count) {
  AdaptedDevice::Levels levels;
  for (size_t n = 0; n < noise_levels.size(); ++n)
    levels.noise += prior.odds.noise[n] * noise_levels[n] * noise_levels[n];
  for (size_t r = 0; r < residual_levels.size(); ++r)
    levels.residual += prior.odds.residual[r] * residual_levels[r] * residual_levels[r];
  for (const auto& by_spread : prior.odds.centre) {
    for (size_t s = 0; s < spread_levels.size(); ++s)
      levels.spread += by_spread[s] * spread_levels[s] * spread_levels[s];
  }
  const PriorBasis basis(prior);
  return choose(DesignCovariance(project_all(basis, candidates), levels), candidates.size(), count);
}

}  // namespace foretoken
