#include "kernel/fit/fit_errors.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/random.h"

namespace foretoken::fit_errors_test {

// Errors around `middle` with the given spread, of kernels that take `seconds`.
FitErrors errors_around(double middle, double spread, double seconds, size_t count, uint64_t seed) {
  RandomStream random(seed, "errors");
  FitErrors errors;
  for (size_t i = 0; i < count; ++i)
    errors.push_back({.predicted = seconds, .log_error = middle + random.normal(0, spread)});
  return errors;
}

TEST(FitErrorsTest, the_error_of_long_kernels_leaves_out_what_was_measured_to_be_short) {
  // 10 us measured as 15, 30 us as 20, 100 us as 50.
  const FitErrors errors = {{.predicted = 10e-6, .log_error = std::log(1.5)},
                            {.predicted = 30e-6, .log_error = std::log(20.1 / 30)},
                            {.predicted = 100e-6, .log_error = std::log(0.5)}};
  const double second = 100 * (30 / 20.1 - 1);
  EXPECT_NEAR(mean_percentage_error(errors), (100.0 / 3 + second + 100) / 3, 1e-9);
  EXPECT_NEAR(mean_percentage_error(errors, long_kernel_seconds), (second + 100) / 2, 1e-9);
  EXPECT_EQ(mean_percentage_error({}), 0);
  EXPECT_EQ(mean_percentage_error(errors, 1), 0);
}

TEST(FitErrorsTest, widths_hold_nine_tenths_of_the_rows_they_come_from_in_each_bin_of_time) {
  const FitErrors quick = errors_around(0, 0.3, 5e-6, 2000, 1), slow = errors_around(0.05, 0.05, 1e-3, 2000, 2);
  FitErrors both = quick;
  both.insert(both.end(), slow.begin(), slow.end());
  const HalfWidths widths = half_widths_from(both);
  EXPECT_NEAR(coverage(quick, widths), 90, 0.1);
  EXPECT_NEAR(coverage(slow, widths), 90, 0.1);
  EXPECT_GT(widths.at(5e-6), 2 * widths.at(1e-3));
}

TEST(FitErrorsTest, groups_that_are_wrong_each_in_their_own_way_widen_the_intervals_of_a_new_one) {
  std::vector<FitErrors> alike, apart;
  const double levels[] = {-0.4, -0.1, 0.1, 0.5};
  for (uint64_t g = 0; g < 4; ++g) {
    alike.push_back(errors_around(0, 0.1, 50e-6, 1000, g));
    apart.push_back(errors_around(levels[g], 0.05, 50e-6, 1000, g));
  }
  std::vector<double> coverage_of;
  const HalfWidths of_alike = half_widths_across(alike, coverage_of);
  for (const double share : coverage_of) EXPECT_NEAR(share, 90, 4);
  EXPECT_NEAR(of_alike.at(50e-6), 0.1645, 0.02);
  const HalfWidths of_apart = half_widths_across(apart, coverage_of);
  ASSERT_EQ(coverage_of.size(), 4u);
  double sum = 0;
  for (const double share : coverage_of) {
    sum += share;
    EXPECT_GE(share, 80) << "of every group";
  }
  EXPECT_GE(sum / 4, 90);
  FitErrors pooled;
  for (const FitErrors& group : apart) pooled.insert(pooled.end(), group.begin(), group.end());
  EXPECT_GT(of_apart.at(50e-6), 1.05 * half_widths_from(pooled).at(50e-6));
}

TEST(FitErrorsTest, intervals_of_kernels_that_the_fit_has_never_seen_are_wider) {
  const FitErrors known = errors_around(0, 0.1, 50e-6, 1000, 1);
  FitErrors unseen = errors_around(0.6, 0.3, 50e-6, 1000, 7);
  const HalfWidths widths = half_widths_from(known);
  EXPECT_LT(coverage(unseen, widths), 20);
  for (FitError& error : unseen) error.unseen_half_width = HalfWidths::of_no_rows;
  EXPECT_NEAR(coverage(unseen, widths), 91, 3);
}

TEST(FitErrorsTest, one_group_alone_says_nothing_about_others) {
  std::vector<double> coverage_of;
  const FitErrors only = errors_around(0, 0.1, 50e-6, 500, 1);
  EXPECT_EQ(half_widths_across({only}, coverage_of).at(50e-6), half_widths_from(only).at(50e-6));
  EXPECT_EQ(half_widths_across({}, coverage_of).at(50e-6), 1);
}

TEST(FitErrorsTest, a_group_of_another_kind_does_not_widen_the_intervals_of_the_others) {
  std::vector<FitErrors> groups(12);
  for (size_t g = 0; g < groups.size(); ++g) {
    for (int i = 0; i < 200; ++i)
      groups[g].push_back({.predicted = 1e-5, .log_error = (g == 0 ? 3 : 0) + 0.001 * (i - 100)});
  }
  std::vector<double> coverage_of;
  EXPECT_LT(half_widths_across(groups, coverage_of).at(1e-5), 0.11) << "not twice that";
  EXPECT_EQ(coverage_of[0], 0) << "out of reach";
  for (size_t g = 1; g < groups.size(); ++g) EXPECT_GT(coverage_of[g], 90);
}

}  // namespace foretoken::fit_errors_test
