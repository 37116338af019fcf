#include "kernel/fewshot/linear_fit.h"

#include <algorithm>

#include "base/error.h"
#include "base/statistics.h"

namespace foretoken {
namespace {

std::vector<double> feature_means_of(const std::vector<std::vector<double>>& features, std::span<const size_t> rows) {
  ensure(!rows.empty(), "a fit has rows");
  std::vector<double> means(features[rows[0]].size());
  for (const size_t row : rows) {
    for (size_t f = 0; f < means.size(); ++f) means[f] += features[row][f];
  }
  for (double& value : means) value /= static_cast<double>(rows.size());
  return means;
}

// Covariances times the number of rows, with the penalty on the diagonal; by rows of the lower triangle.
std::vector<double> penalised_moments(const std::vector<std::vector<double>>& features, std::span<const size_t> rows,
                                      std::span<const double> means, double penalty) {
  const size_t size = means.size();
  std::vector<double> moments(size * size);
  std::vector<size_t> present;
  for (const size_t row : rows) {
    const std::vector<double>& values = features[row];
    present.clear();  // most features of an architecture are zero
    for (size_t f = 0; f < size; ++f) {
      if (values[f] != 0) present.push_back(f);
    }
    for (size_t a = 0; a < present.size(); ++a) {
      double* moment = moments.data() + present[a] * size;
      for (size_t b = 0; b <= a; ++b) moment[present[b]] += values[present[a]] * values[present[b]];
    }
  }
  const auto count = static_cast<double>(rows.size());
  for (size_t i = 0; i < size; ++i) {
    for (size_t j = 0; j <= i; ++j) moments[i * size + j] -= count * means[i] * means[j];
    constexpr double least_variance = 1e-9;  // of a feature that never varies: its weight stays zero
    const double variance = std::max(moments[i * size + i] / count, least_variance);
    moments[i * size + i] += penalty * variance + least_variance * count;
  }
  return moments;
}

}  // namespace

LinearFitter::LinearFitter(const std::vector<std::vector<double>>& features, std::span<const size_t> rows,
                           double penalty)
    : features_(features),
      rows_(rows.begin(), rows.end()),
      means_(feature_means_of(features, rows)),
      factor_(penalised_moments(features, rows, means_, penalty), means_.size()) {}

LinearModel LinearFitter::fit(std::span<const double> targets) const {
  const double level = mean(targets);
  std::vector<double> products(means_.size());
  for (size_t r = 0; r < rows_.size(); ++r) {
    const std::vector<double>& values = features_[rows_[r]];
    const double target = targets[r] - level;
    for (size_t f = 0; f < products.size(); ++f) products[f] += values[f] * target;
  }
  LinearModel model{.weights = factor_.solve(products)};
  model.intercept = level - dot(model.weights, means_);
  return model;
}

}  // namespace foretoken
