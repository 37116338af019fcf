#include "kernel/fewshot/cholesky.h"

#include <cmath>

#include "base/error.h"
#include "base/portable_math.h"

namespace foretoken {

double dot(std::span<const double> a, std::span<const double> b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

Cholesky::Cholesky(std::vector<double> matrix, size_t size) : size_(size), factor_(std::move(matrix)) {
  for (size_t i = 0; i < size_; ++i) {
    double* row = factor_.data() + i * size_;
    for (size_t j = 0; j <= i; ++j) {
      const double* other = factor_.data() + j * size_;
      const double rest = row[j] - dot({row, j}, {other, j});
      if (j < i) {
        row[j] = rest / other[j];
      } else {
        ensure(rest > 0, "a covariance is positive definite");
        row[i] = std::sqrt(rest);
      }
    }
  }
}

std::vector<double> Cholesky::half_solve(std::span<const double> right) const {
  std::vector<double> result(size_);
  for (size_t i = 0; i < size_; ++i) {
    const double* row = factor_.data() + i * size_;
    result[i] = (right[i] - dot({row, i}, {result.data(), i})) / row[i];
  }
  return result;
}

std::vector<double> Cholesky::solve(std::span<const double> right) const {
  std::vector<double> result = half_solve(right);
  for (size_t i = size_; i-- > 0;) {
    const double* row = factor_.data() + i * size_;
    result[i] /= row[i];
    for (size_t j = 0; j < i; ++j) result[j] -= row[j] * result[i];
  }
  return result;
}

std::vector<double> Cholesky::inverse() const {
  std::vector<double> matrix(size_ * size_);
  for (size_t column = 0; column < size_; ++column) {
    std::vector<double> unit(size_);
    unit[column] = 1;
    const std::vector<double> solved = solve(unit);
    for (size_t row = 0; row < size_; ++row) matrix[row * size_ + column] = solved[row];
  }
  return matrix;
}

std::vector<double> Cholesky::inverse_diagonal() const {
  // matrix^-1 = L^-T L^-1: sums of squares of the columns of L^-1, which are zero above the diagonal.
  std::vector<double> diagonal(size_), column(size_);
  for (size_t j = 0; j < size_; ++j) {
    for (size_t i = j; i < size_; ++i) {
      const double* row = factor_.data() + i * size_;
      const double right = i == j ? 1 : 0;
      column[i] = (right - dot({row + j, i - j}, {column.data() + j, i - j})) / row[i];
      diagonal[j] += column[i] * column[i];
    }
  }
  return diagonal;
}

double Cholesky::log_determinant() const {
  double sum = 0;
  for (size_t i = 0; i < size_; ++i) sum += 2 * portable_log(factor_[i * size_ + i]);
  return sum;
}

}  // namespace foretoken
