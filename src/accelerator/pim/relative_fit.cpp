#include "accelerator/pim/relative_fit.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"

namespace foretoken {
namespace {

// The weighted normal equations of columns / measured against 1.
struct NormalEquations {
  std::vector<std::vector<double>> products;
  std::vector<double> targets;
};

NormalEquations normal_equations(std::span<const RelativeFitRow> rows, std::span<const double> weights) {
  const size_t count = rows.front().columns.size();
  NormalEquations equations{.products = std::vector(count, std::vector<double>(count)),
                            .targets = std::vector<double>(count)};
  for (size_t i = 0; i < rows.size(); ++i) {
    for (size_t a = 0; a < count; ++a) {
      const double share = rows[i].columns[a] / rows[i].measured;
      equations.targets[a] += weights[i] * share;
      for (size_t b = 0; b < count; ++b) {
        equations.products[a][b] += weights[i] * share * rows[i].columns[b] / rows[i].measured;
      }
    }
  }
  return equations;
}

// Coordinate descent on a convex quadratic: each unknown is set to its best, again and again.
void descend(const NormalEquations& equations, std::vector<double>& coefficients) {
  constexpr int rounds = 300;
  for (int round = 0; round < rounds; ++round) {
    for (size_t a = 0; a < coefficients.size(); ++a) {
      if (equations.products[a][a] <= 0) continue;
      double rest = equations.targets[a];
      for (size_t b = 0; b < coefficients.size(); ++b) {
        if (b != a) rest -= equations.products[a][b] * coefficients[b];
      }
      coefficients[a] = std::max(0.0, rest / equations.products[a][a]);
    }
  }
}

}  // namespace

// Least absolute errors by reweighted least squares; errors below the floor count as squares.
std::vector<double> fit_relative(std::span<const RelativeFitRow> rows) {
  ensure(!rows.empty(), "there are rows to fit");
  constexpr double floor = 0.01;
  constexpr int rounds = 30;
  std::vector<double> coefficients(rows.front().columns.size());
  std::vector<double> weights(rows.size(), 1);
  for (int round = 0; round < rounds; ++round) {
    descend(normal_equations(rows, weights), coefficients);
    for (size_t i = 0; i < rows.size(); ++i) {
      double predicted = 0;
      for (size_t a = 0; a < coefficients.size(); ++a) predicted += coefficients[a] * rows[i].columns[a];
      weights[i] = 1 / std::max(floor, std::abs(predicted / rows[i].measured - 1));
    }
  }
  return coefficients;
}

}  // namespace foretoken
