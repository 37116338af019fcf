// The factor of a symmetric positive definite matrix, by plain loops: the same bits on every machine.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace foretoken {

class Cholesky {
 public:
  // `matrix` by rows; its lower triangle is read. InternalError where it is not positive definite.
  Cholesky(std::vector<double> matrix, size_t size);

  size_t size() const { return size_; }
  std::vector<double> half_solve(std::span<const double> right) const;  // L^-1 right, for matrix = L L^T
  std::vector<double> solve(std::span<const double> right) const;       // matrix^-1 right
  std::vector<double> inverse() const;                                  // matrix^-1, by rows
  std::vector<double> inverse_diagonal() const;                         // of matrix^-1, a sixth of that work
  double log_determinant() const;

 private:
  size_t size_;
  std::vector<double> factor_;  // L in the lower triangle
};

double dot(std::span<const double> a, std::span<const double> b);

}  // namespace foretoken
