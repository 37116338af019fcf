#include "kernel/fit/fit_errors.h"

#include <algorithm>
#include <cmath>

#include "base/portable_math.h"
#include "base/statistics.h"

namespace foretoken {
namespace {

constexpr double wanted_coverage = 90, least_coverage = 80;  // on average, and of every group

FitErrors all_but(const std::vector<FitErrors>& groups, size_t left_out) {
  FitErrors rest;
  for (size_t g = 0; g < groups.size(); ++g) {
    if (g != left_out) rest.insert(rest.end(), groups[g].begin(), groups[g].end());
  }
  return rest;
}

}  // namespace

double FitError::measured() const {
  return predicted * portable_exp(log_error);
}

double mean_percentage_error(const FitErrors& errors, double least_seconds) {
  double sum = 0, count = 0;
  for (const FitError& error : errors) {
    if (error.measured() < least_seconds) continue;
    sum += std::abs(portable_exp(-error.log_error) - 1);
    count += 1;
  }
  return count > 0 ? 100 * sum / count : 0;
}

HalfWidths half_widths_from(const FitErrors& errors) {
  constexpr size_t enough = 40;
  std::vector<double> all;
  std::vector<std::vector<double>> bins(std::size(HalfWidths::edges_us));
  for (const FitError& error : errors) {
    bins[HalfWidths::bin(error.predicted)].push_back(std::abs(error.log_error));
    all.push_back(std::abs(error.log_error));
  }
  HalfWidths widths;
  const double overall = all.empty() ? HalfWidths::of_no_rows : quantile(all, wanted_coverage / 100);
  for (size_t i = 0; i < bins.size(); ++i)
    widths.by_time[i] = bins[i].size() >= enough ? quantile(bins[i], wanted_coverage / 100) : overall;
  return widths;
}

HalfWidths scaled(const HalfWidths& widths, double factor) {
  HalfWidths result = widths;
  for (double& width : result.by_time) width *= factor;
  return result;
}

double coverage(const FitErrors& errors, const HalfWidths& widths) {
  size_t held = 0;
  for (const FitError& error : errors) {
    const double width = portable_hypot(widths.at(error.predicted), error.unseen_half_width);
    held += std::abs(error.log_error) <= width ? 1 : 0;
  }
  return errors.empty() ? 0 : 100 * static_cast<double>(held) / static_cast<double>(errors.size());
}

HalfWidths half_widths_across(const std::vector<FitErrors>& groups, std::vector<double>& coverage_of,
                              std::vector<HalfWidths>* without_each) {
  coverage_of.assign(groups.size(), 0);
  if (without_each != nullptr) without_each->clear();
  const HalfWidths pooled = half_widths_from(all_but(groups, groups.size()));
  if (groups.size() < 2) return pooled;
  std::vector<HalfWidths> without;
  for (size_t g = 0; g < groups.size(); ++g) without.push_back(half_widths_from(all_but(groups, g)));
  const auto cover = [&](double factor) {
    for (size_t g = 0; g < groups.size(); ++g) coverage_of[g] = coverage(groups[g], scaled(without[g], factor));
  };
  constexpr double step = 1.02, most = 2;
  const auto least_factor = [&](double least_of_each) {
    double factor = 1;
    for (; factor < most; factor *= step) {
      cover(factor);
      const double worst = *std::min_element(coverage_of.begin(), coverage_of.end());
      if (mean(coverage_of) >= wanted_coverage && worst >= least_of_each) break;
    }
    return factor;
  };
  // A group that twice the width does not hold is another kind of thing: it would only blur the others.
  double factor = least_factor(least_coverage);
  if (factor >= most) factor = least_factor(0);
  cover(factor);
  if (without_each != nullptr) {
    for (const HalfWidths& widths : without) without_each->push_back(scaled(widths, factor));
  }
  return scaled(pooled, factor);
}

}  // namespace foretoken
