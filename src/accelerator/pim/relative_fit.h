// A line through few measurements, by relative error and without being drawn by outliers.
#pragma once

#include <span>
#include <vector>

namespace foretoken {

struct RelativeFitRow {
  std::vector<double> columns;  // as many in every row
  double measured = 0;          // above zero
};

// Coefficients, none below zero, with the least sum of |columns . coefficients / measured - 1|; zero for a column that
// is zero in every row. Deterministic.
std::vector<double> fit_relative(std::span<const RelativeFitRow> rows);

}  // namespace foretoken
