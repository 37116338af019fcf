// Summaries of samples, and of how far predictions lie from measurements.
#pragma once

#include <cmath>
#include <cstddef>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace foretoken {

// All of these want at least one value.
double mean(std::span<const double> values);
double standard_deviation(std::span<const double> values);  // of the population: divides by n, as numpy.std does

// The value a share `q` (0 to 1) of the way through the sorted values, linear between neighbours: numpy's default.
double quantile(std::vector<double> values, double q);
double quantile_of_sorted(std::span<const double> sorted, double q);

// Rank correlation, ties sharing their average rank; 0 where it is undefined (one pair, or a side that never varies).
double spearman(std::span<const double> a, std::span<const double> b);

struct PredictedRow {
  double measured = 0;  // above zero: a percentage of nothing has no meaning
  double predicted = 0;
  double low = 0;  // central 90% interval
  double high = 0;
};

inline double percent_error(double predicted, double measured) {
  return 100 * std::abs(predicted / measured - 1);
}

// Percentages as plain numbers: 4.8 means 4.8 %. No rows: all zero.
struct ErrorSummary {
  size_t n = 0;
  double mape = 0;  // mean of |predicted - measured| / measured
  double median_ape = 0;
  double p90_ape = 0;
  double bias = 0;        // mean of (predicted - measured) / measured; positive = predicts too long
  double spearman = 0;    // -1 to 1, between predicted and measured
  double coverage90 = 0;  // share of measurements inside [low, high]
};

ErrorSummary summarize_errors(std::span<const PredictedRow> rows);

// Rows by group, for a table of errors per group and overall; 32 bytes a row.
class ErrorTable {
 public:
  void add(std::string_view group, const PredictedRow& row);
  ErrorSummary overall() const;
  std::vector<std::pair<std::string, ErrorSummary>> groups() const;  // in the order of their names

 private:
  std::map<std::string, std::vector<PredictedRow>, std::less<>> rows_;
};

}  // namespace foretoken
