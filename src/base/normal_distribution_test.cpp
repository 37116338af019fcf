#include "base/normal_distribution.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/error.h"

namespace foretoken::normal_distribution_test {

TEST(NormalDistribution, agrees_with_the_error_function) {
  for (double z = -12; z <= 12; z += 0.0625) {
    const double expected = 0.5 * std::erfc(-z / std::sqrt(2.0));
    EXPECT_NEAR(normal_below(z), expected, 1e-12 * expected) << z;
  }
}

TEST(NormalDistribution, quantiles_undo_probabilities) {
  for (double z = -7; z <= 7; z += 0.25) EXPECT_NEAR(normal_quantile(normal_below(z)), z, 1e-4) << z;
  for (const double share : {1e-9, 0.05, 0.5, 0.95}) EXPECT_NEAR(normal_below(normal_quantile(share)), share, 1e-13);
  EXPECT_THROW(normal_quantile(0), InternalError);
  EXPECT_THROW(normal_quantile(1), InternalError);
}

// H. L. Harter, "Expected values of normal order statistics", Biometrika 48 (1961).
TEST(NormalDistribution, the_largest_of_a_few_has_its_tabulated_mean) {
  EXPECT_EQ(largest_normal(1).mean, 0);
  EXPECT_NEAR(largest_normal(2).mean, 1 / std::sqrt(std::acos(-1.0)), 1e-5);
  EXPECT_NEAR(largest_normal(10).mean, 1.53875, 1e-4);
  EXPECT_NEAR(largest_normal(100).mean, 2.50759, 1e-4);
}

TEST(NormalDistribution, the_largest_of_more_is_larger_and_varies_less) {
  for (double count = 1; count < 1e6; count *= 3) {
    const MeanAndDeviation few = largest_normal(count), many = largest_normal(3 * count);
    EXPECT_LT(few.mean, many.mean);
    EXPECT_GT(few.deviation, many.deviation);
    EXPECT_LT(many.mean, std::sqrt(2 * std::log(3 * count)));
  }
}

}  // namespace foretoken::normal_distribution_test
