#include "kernel/fewshot/cholesky.h"

#include <gtest/gtest.h>

namespace foretoken::cholesky_test {

TEST(Cholesky, the_inverse_times_the_matrix_is_one) {
  const std::vector<double> matrix = {4, 1, -0.5, 1, 3, 0.25, -0.5, 0.25, 2};
  const std::vector<double> inverse = Cholesky(matrix, 3).inverse();
  for (size_t i = 0; i < 3; ++i) {
    for (size_t j = 0; j < 3; ++j) {
      double sum = 0;
      for (size_t k = 0; k < 3; ++k) sum += inverse[i * 3 + k] * matrix[k * 3 + j];
      EXPECT_NEAR(sum, i == j, 1e-15) << i << " " << j;
    }
    EXPECT_NEAR(Cholesky(matrix, 3).inverse_diagonal()[i], inverse[i * 3 + i], 1e-15);
  }
}

}  // namespace foretoken::cholesky_test
