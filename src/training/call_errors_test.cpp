#include "training/call_errors.h"

#include <cmath>

#include <gtest/gtest.h>

namespace foretoken::call_errors_test {

constexpr Estimate two{.value = 2, .low = 1.5, .high = 3, .kind = Confidence::interpolated};
constexpr Estimate four{.value = 4, .low = 3, .high = 6, .kind = Confidence::extrapolated};

TEST(CallErrors, of_different_shapes_lie_between_quadrature_and_a_linear_sum) {
  const ErrorCorrelations correlations{.within = {{"gemm", 0.6}}, .between = 0.3};
  for (const char* other : {"gemm", "norm"}) {
    CallErrors calls(correlations);
    calls.add(two, "gemm", 0);
    calls.add(four, other, 1);
    const Estimate sum = calls.total();
    EXPECT_DOUBLE_EQ(sum.value, 6);
    EXPECT_GT(sum.value - sum.low, std::hypot(0.5, 1));
    EXPECT_LT(sum.value - sum.low, 1.5);
    EXPECT_GT(sum.high - sum.value, std::hypot(1, 2));
    EXPECT_LT(sum.high - sum.value, 3);
    EXPECT_EQ(sum.kind, Confidence::extrapolated);
  }
}

TEST(CallErrors, of_one_shape_add_up_wherever_it_runs) {
  const ErrorCorrelations correlations;
  CallErrors calls(correlations), others(correlations);
  calls.add(two, "gemm", 7);
  others.add(four, "gemm", 7);
  calls.add(others, 0.5);
  const Estimate sum = calls.total();
  EXPECT_DOUBLE_EQ(sum.value, 4);
  EXPECT_DOUBLE_EQ(sum.low, 3);
  EXPECT_DOUBLE_EQ(sum.high, 6);
}

TEST(CallErrors, beside_something_longer_count_only_as_far_as_they_reach_beyond_it) {
  const WidthShares hidden = widths_beside(two, 4);
  EXPECT_EQ(hidden.below, 0);
  EXPECT_EQ(hidden.above, 0);
  const WidthShares nearly = widths_beside(two, 2.5);
  EXPECT_EQ(nearly.below, 0);
  EXPECT_DOUBLE_EQ(nearly.above, 0.5);
  const WidthShares longer = widths_beside(two, 1.75);
  EXPECT_DOUBLE_EQ(longer.below, 0.5);
  EXPECT_DOUBLE_EQ(longer.above, 1);
  EXPECT_EQ(widths_beside(two, -1).below, 1);
}

TEST(StackInterval, is_all_there_is_where_kernels_have_no_error) {
  const Estimate step = with_stack_interval(exactly(10), {.low = 0.8, .high = 1.5}, Confidence::interpolated);
  EXPECT_DOUBLE_EQ(step.value, 10);
  EXPECT_DOUBLE_EQ(step.low, 8);
  EXPECT_DOUBLE_EQ(step.high, 15);
  EXPECT_EQ(step.kind, Confidence::interpolated);
}

TEST(StackInterval, holds_the_errors_that_the_kernels_of_its_runs_had) {
  const RunInterval runs{.low = 0.9, .high = 1.1, .kernels_low = 0.75, .kernels_high = 1.5};
  const Estimate alike = with_stack_interval(two, runs, Confidence::interpolated);
  EXPECT_DOUBLE_EQ(alike.low, 1.8);
  EXPECT_DOUBLE_EQ(alike.high, 2.2);
}

TEST(StackInterval, widens_with_kernels_that_are_less_certain_and_never_narrows) {
  const RunInterval runs{.low = 0.9, .high = 1.1, .kernels_low = 0.95, .kernels_high = 1.05};
  double low = 0.9, high = 1.1;
  for (const double width : {0.01, 0.05, 0.1, 0.3, 0.8}) {
    const Estimate step =
        with_stack_interval({.value = 1, .low = 1 / (1 + width), .high = 1 + width, .kind = Confidence::roofline}, runs,
                            Confidence::interpolated);
    EXPECT_LE(step.low, low * (1 + 1e-12)) << width;
    EXPECT_GE(step.high, high * (1 - 1e-12)) << width;
    EXPECT_LE(std::log(step.high), std::hypot(std::log(1.1), std::log(1 + width)) + 1e-12) << width;
    EXPECT_EQ(step.kind, Confidence::roofline);
    low = step.low;
    high = step.high;
  }
  EXPECT_LT(low, 0.6);
  EXPECT_GT(high, 1.7);
}

}  // namespace foretoken::call_errors_test
