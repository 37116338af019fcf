// Linear regression with a penalty on weights, for many targets over the same rows.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "kernel/fewshot/cholesky.h"

namespace foretoken {

struct LinearModel {
  std::vector<double> weights;
  double intercept = 0;

  double at(std::span<const double> features) const { return intercept + dot(weights, features); }
};

class LinearFitter {
 public:
  // `penalty` counts rows: a feature's weight is held back as by that many rows that say it is zero, in units of how
  // much the feature varies.
  LinearFitter(const std::vector<std::vector<double>>& features, std::span<const size_t> rows, double penalty);

  LinearModel fit(std::span<const double> targets) const;  // one per row

 private:
  const std::vector<std::vector<double>>& features_;
  std::vector<size_t> rows_;
  std::vector<double> means_;
  Cholesky factor_;
};

}  // namespace foretoken
