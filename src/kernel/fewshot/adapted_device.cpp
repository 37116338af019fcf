#include "kernel/fewshot/adapted_device.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/portable_math.h"
#include "base/statistics.h"
#include "kernel/fewshot/failed_rows.h"

namespace foretoken {
namespace {

constexpr double level_variance = 25;    // of the logarithm: a device may be thousands of times faster
constexpr double least_weight = 1e-3;    // hypotheses below are dropped
constexpr double least_reported = 0.01;  // resemblances below are not shown

double squared(double value) {
  return value * value;
}

// The parts of the covariances of an architecture with each timing, which all cells share.
struct CovarianceParts {
  std::vector<double> spread, residual;
};

CovarianceParts covariance_parts(const Projection& projection, const ProjectedTimings& timings) {
  CovarianceParts parts;
  for (const Projection& timed : timings.projections) {
    parts.spread.push_back(dot(projection.spread, timed.spread));
    parts.residual.push_back(dot(projection.residual, timed.residual));
  }
  return parts;
}

double combine(double spread_part, double residual_part, double spread_squared, double residual_squared) {
  return level_variance + spread_squared * spread_part + residual_squared * residual_part;
}

}  // namespace

double prior_covariance(const Projection& a, const Projection& b, double spread_squared, double residual_squared) {
  return combine(dot(a.spread, b.spread), dot(a.residual, b.residual), spread_squared, residual_squared);
}

ProjectedTimings project_timings(const PriorBasis& basis, std::span<const Timing> timings) {
  ensure(!timings.empty(), "adaptation needs a timing");
  ProjectedTimings projected;
  for (const Timing& timing : timings) {
    projected.projections.push_back(basis.project(timing.features));
    projected.log_milliseconds.push_back(portable_log(timing.milliseconds));
  }
  projected.level = mean(projected.log_milliseconds);
  for (double& value : projected.log_milliseconds) value -= projected.level;
  return projected;
}

std::vector<HypothesisCell> weigh_hypotheses(const PriorBasis& basis, const ProjectedTimings& timings) {
  const size_t count = timings.projections.size();
  std::vector<double> by_spread(count * count), by_residual(count * count);
  for (size_t i = 0; i < count; ++i) {
    for (size_t j = 0; j <= i; ++j) {
      by_spread[i * count + j] = dot(timings.projections[i].spread, timings.projections[j].spread);
      by_residual[i * count + j] = dot(timings.projections[i].residual, timings.projections[j].residual);
    }
  }
  std::vector<HypothesisCell> cells;
  for (size_t n = 0; n < noise_levels.size(); ++n) {
    for (size_t s = 0; s < spread_levels.size(); ++s) {
      for (size_t r = 0; r < residual_levels.size(); ++r) {
        std::vector<double> covariance(count * count);
        for (size_t i = 0; i < covariance.size(); ++i) {
          covariance[i] = combine(by_spread[i], by_residual[i], squared(spread_levels[s]), squared(residual_levels[r]));
        }
        for (size_t i = 0; i < count; ++i) covariance[i * count + i] += squared(noise_levels[n]);
        HypothesisCell cell{.noise = n, .spread = s, .residual = r, .factor = Cholesky(std::move(covariance), count)};
        const double log_determinant = cell.factor.log_determinant();
        for (size_t c = 0; c < basis.centres().size(); ++c) {
          std::vector<double> error = timings.log_milliseconds;
          for (size_t i = 0; i < count; ++i) error[i] -= timings.projections[i].centres[c];
          cell.coefficients.push_back(cell.factor.solve(error));
          cell.log_evidence.push_back(-0.5 * (dot(error, cell.coefficients.back()) + log_determinant));
        }
        cells.push_back(std::move(cell));
      }
    }
  }
  return cells;
}

double log_odds(const PriorOdds& odds, const HypothesisCell& cell, const PriorBasis::Centre& centre) {
  return portable_log(odds.noise[cell.noise] * odds.residual[cell.residual] *
                      odds.centre[static_cast<size_t>(centre.kind)][cell.spread] * centre.share);
}

AdaptedDevice::AdaptedDevice(const LatencyPrior& prior, std::span<const Timing> timings)
    : basis_(prior), interval_factor_(prior.interval_factor), timings_(project_timings(basis_, timings)) {
  std::vector<HypothesisCell> cells = weigh_hypotheses(basis_, timings_);
  const std::span<const PriorBasis::Centre> centres = basis_.centres();
  double most = -INFINITY;
  for (HypothesisCell& cell : cells) {
    for (size_t c = 0; c < centres.size(); ++c) {
      cell.log_evidence[c] += log_odds(prior.odds, cell, centres[c]);
      most = std::max(most, cell.log_evidence[c]);
    }
  }
  double total = 0;
  for (HypothesisCell& cell : cells) {
    WeighedCell kept{.cell = std::move(cell)};
    for (size_t c = 0; c < centres.size(); ++c) {
      const double weight = portable_exp(kept.cell.log_evidence[c] - most);
      if (weight < least_weight) continue;
      kept.centres.push_back({.centre = c, .weight = weight});
      total += weight;
    }
    if (!kept.centres.empty()) cells_.push_back(std::move(kept));
  }
  for (WeighedCell& cell : cells_) {
    for (Weighed& centre : cell.centres) centre.weight /= total;
  }
}

AdaptedDevice::LogEstimate AdaptedDevice::log_milliseconds(const Projection& projection) const {
  const CovarianceParts parts = covariance_parts(projection, timings_);
  const double own_spread = dot(projection.spread, projection.spread);
  const double own_residual = dot(projection.residual, projection.residual);
  std::vector<double> covariance(parts.spread.size());
  double first = 0, second = 0;  // moments of the mixture, less the level
  for (const WeighedCell& weighed : cells_) {
    const HypothesisCell& cell = weighed.cell;
    const double spread = squared(spread_levels[cell.spread]), residual = squared(residual_levels[cell.residual]);
    for (size_t t = 0; t < covariance.size(); ++t)
      covariance[t] = combine(parts.spread[t], parts.residual[t], spread, residual);
    const std::vector<double> explained = cell.factor.half_solve(covariance);
    const double own = combine(own_spread, own_residual, spread, residual);
    const double variance = std::max(0.0, own - dot(explained, explained)) + squared(noise_levels[cell.noise]);
    for (const Weighed& centre : weighed.centres) {
      const double value = projection.centres[centre.centre] + dot(covariance, cell.coefficients[centre.centre]);
      first += centre.weight * value;
      second += centre.weight * (value * value + variance);
    }
  }
  return {.value = timings_.level + first, .deviation = std::sqrt(std::max(0.0, second - first * first))};
}

Estimate AdaptedDevice::milliseconds(std::span<const double> features) const {
  const LogEstimate estimate = log_milliseconds(basis_.project(features));
  const double half_width = interval_factor_ * estimate.deviation;
  return {.value = portable_exp(estimate.value),
          .low = portable_exp(estimate.value - half_width),
          .high = portable_exp(estimate.value + half_width),
          .kind = Confidence::interpolated};
}

std::vector<AdaptedDevice::Resemblance> AdaptedDevice::resembles() const {
  std::vector<Resemblance> result;
  for (const PriorBasis::Centre& centre : basis_.centres()) result.push_back({.name = centre.name});
  for (const WeighedCell& cell : cells_) {
    for (const Weighed& centre : cell.centres) result[centre.centre].share += centre.weight;
  }
  std::erase_if(result, [](const Resemblance& one) { return one.share < least_reported; });
  std::stable_sort(result.begin(), result.end(),
                   [](const Resemblance& a, const Resemblance& b) { return a.share > b.share; });
  return result;
}

AdaptedDevice::Levels AdaptedDevice::squared_levels() const {
  Levels levels;
  for (const WeighedCell& cell : cells_) {
    for (const Weighed& centre : cell.centres) {
      levels.noise += centre.weight * squared(noise_levels[cell.cell.noise]);
      levels.spread += centre.weight * squared(spread_levels[cell.cell.spread]);
      levels.residual += centre.weight * squared(residual_levels[cell.cell.residual]);
    }
  }
  return levels;
}

double leave_one_out_mape(const LatencyPrior& prior, std::span<const Timing> timings) {
  double sum = 0;
  for (size_t t = 0; t < timings.size(); ++t) {
    std::vector<Timing> others(timings.begin(), timings.end());
    others.erase(others.begin() + static_cast<std::ptrdiff_t>(t));
    const double predicted = AdaptedDevice(prior, others).milliseconds(timings[t].features).value;
    sum += std::abs(predicted / timings[t].milliseconds - 1);
  }
  return 100 * sum / static_cast<double>(timings.size());
}

std::vector<size_t> failed_timings(const LatencyPrior& prior, std::span<const Timing> timings) {
  constexpr double too_fast = 1.0 / 3;
  std::vector<double> milliseconds;
  for (const Timing& timing : timings) milliseconds.push_back(timing.milliseconds);
  std::vector<size_t> suspects = far_below_median(milliseconds);
  if (suspects.empty()) return {};
  std::vector<Timing> trusted;
  for (size_t t = 0; t < timings.size(); ++t) {
    if (!std::binary_search(suspects.begin(), suspects.end(), t)) trusted.push_back(timings[t]);
  }
  const AdaptedDevice device(prior, trusted);
  std::erase_if(suspects, [&](size_t t) {
    return timings[t].milliseconds > too_fast * device.milliseconds(timings[t].features).value;
  });
  return suspects;
}

}  // namespace foretoken
