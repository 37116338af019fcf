#include "base/statistics.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>

#include "base/error.h"

namespace foretoken {
namespace {

void ensure_is_comparable(const PredictedRow& row) {
  ensure(row.measured > 0 && std::isfinite(row.measured), "a measured value to compare with is finite and above zero");
  ensure(std::isfinite(row.predicted), "a prediction is a finite number");
}

// 1-based ranks; equal values share the average of the ranks they take up.
std::vector<double> average_ranks(std::span<const double> values) {
  std::vector<uint32_t> order(values.size());
  std::iota(order.begin(), order.end(), uint32_t{0});
  std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) { return values[a] < values[b]; });
  std::vector<double> ranks(values.size());
  for (size_t begin = 0, end = 0; begin < order.size(); begin = end) {
    while (end < order.size() && values[order[end]] == values[order[begin]]) ++end;
    const double shared = static_cast<double>(begin + 1 + end) / 2;
    for (size_t i = begin; i < end; ++i) ranks[order[i]] = shared;
  }
  return ranks;
}

}  // namespace

double mean(std::span<const double> values) {
  ensure(!values.empty(), "a mean is taken of at least one value");
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

double standard_deviation(std::span<const double> values) {
  const double centre = mean(values);
  double squares = 0;
  for (const double value : values) squares += (value - centre) * (value - centre);
  return std::sqrt(squares / static_cast<double>(values.size()));
}

double quantile(std::vector<double> values, double q) {
  std::sort(values.begin(), values.end());
  return quantile_of_sorted(values, q);
}

double quantile_of_sorted(std::span<const double> sorted, double q) {
  ensure(!sorted.empty(), "a quantile is taken of at least one value");
  ensure(q >= 0 && q <= 1, "a quantile is a share between 0 and 1");
  const double position = q * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<size_t>(position);
  const size_t above = std::min(below + 1, sorted.size() - 1);
  const double share = position - static_cast<double>(below);
  return sorted[below] + share * (sorted[above] - sorted[below]);
}

double spearman(std::span<const double> a, std::span<const double> b) {
  ensure(a.size() == b.size(), "a correlation pairs each value with one other");
  const std::vector<double> a_ranks = average_ranks(a);
  const std::vector<double> b_ranks = average_ranks(b);
  const double centre = (static_cast<double>(a.size()) + 1) / 2;  // sharing ranks leaves their mean as it is
  double together = 0, a_squares = 0, b_squares = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    together += (a_ranks[i] - centre) * (b_ranks[i] - centre);
    a_squares += (a_ranks[i] - centre) * (a_ranks[i] - centre);
    b_squares += (b_ranks[i] - centre) * (b_ranks[i] - centre);
  }
  if (a_squares == 0 || b_squares == 0) return 0;
  return together / (std::sqrt(a_squares) * std::sqrt(b_squares));
}

ErrorSummary summarize_errors(std::span<const PredictedRow> rows) {
  if (rows.empty()) return {};
  std::vector<double> measured, predicted, percent_errors;
  measured.reserve(rows.size());
  predicted.reserve(rows.size());
  percent_errors.reserve(rows.size());
  double signed_errors = 0;
  size_t covered = 0;
  for (const PredictedRow& row : rows) {
    ensure_is_comparable(row);
    const double error = 100 * (row.predicted - row.measured) / row.measured;
    measured.push_back(row.measured);
    predicted.push_back(row.predicted);
    percent_errors.push_back(std::abs(error));
    signed_errors += error;
    if (row.low <= row.measured && row.measured <= row.high) ++covered;
  }
  std::sort(percent_errors.begin(), percent_errors.end());
  const auto count = static_cast<double>(rows.size());
  return {.n = rows.size(),
          .mape = mean(percent_errors),
          .median_ape = quantile_of_sorted(percent_errors, 0.5),
          .p90_ape = quantile_of_sorted(percent_errors, 0.9),
          .bias = signed_errors / count,
          .spearman = spearman(predicted, measured),
          .coverage90 = 100 * static_cast<double>(covered) / count};
}

void ErrorTable::add(std::string_view group, const PredictedRow& row) {
  ensure_is_comparable(row);
  auto found = rows_.find(group);
  if (found == rows_.end()) found = rows_.emplace(std::string(group), std::vector<PredictedRow>()).first;
  found->second.push_back(row);
}

ErrorSummary ErrorTable::overall() const {
  std::vector<PredictedRow> all;
  for (const auto& [group, rows] : rows_) all.insert(all.end(), rows.begin(), rows.end());
  return summarize_errors(all);
}

std::vector<std::pair<std::string, ErrorSummary>> ErrorTable::groups() const {
  std::vector<std::pair<std::string, ErrorSummary>> summaries;
  for (const auto& [group, rows] : rows_) summaries.emplace_back(group, summarize_errors(rows));
  return summaries;
}

}  // namespace foretoken
