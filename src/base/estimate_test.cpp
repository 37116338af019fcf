#include "base/estimate.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include <gtest/gtest.h>

#include "base/error.h"
#include "base/random.h"

namespace foretoken::base_estimate_test {

std::vector<Estimate> random_parts(RandomStream& stream) {
  std::vector<Estimate> parts(1 + stream.below(12));
  for (Estimate& part : parts) {
    part.value = stream.lognormal(0, 3);
    part.low = part.value * (1 - stream.uniform());
    part.high = part.value * (1 + 3 * stream.uniform());
    part.kind = static_cast<Confidence>(stream.below(4));
  }
  return parts;
}

double width(const Estimate& estimate) {
  return estimate.high - estimate.low;
}

TEST(Estimate, a_sum_is_no_narrower_than_independent_and_no_wider_than_correlated_errors) {
  RandomStream stream(1, "estimate");
  for (int trial = 0; trial < 2000; ++trial) {
    const std::vector<Estimate> parts = random_parts(stream);
    const Estimate independent = sum_of_independent(parts);
    const Estimate correlated = sum_of_correlated(parts);
    double least = stream.uniform(), most = stream.uniform();
    if (least > most) std::swap(least, most);
    const Estimate between = sum_with_correlation(parts, least);
    const Estimate further = sum_with_correlation(parts, most);
    const double rounding = 1e-12 * correlated.high;
    EXPECT_LE(width(independent), width(between) + rounding);
    EXPECT_LE(width(between), width(further) + rounding);
    EXPECT_LE(width(further), width(correlated) + rounding);
    EXPECT_EQ(independent.value, correlated.value);
    EXPECT_LE(between.low, between.value);
    EXPECT_GE(between.high, between.value);
  }
}

TEST(Estimate, fully_correlated_errors_add_their_bounds) {
  RandomStream stream(2, "estimate");
  for (int trial = 0; trial < 500; ++trial) {
    const std::vector<Estimate> parts = random_parts(stream);
    double low = 0, high = 0;
    for (const Estimate& part : parts) {
      low += part.low;
      high += part.high;
    }
    const Estimate sum = sum_of_correlated(parts);
    EXPECT_NEAR(sum.low, low, 1e-12 * high);
    EXPECT_NEAR(sum.high, high, 1e-12 * high);
  }
}

TEST(Estimate, independent_errors_add_in_quadrature_on_each_side) {
  const Estimate parts[] = {{.value = 10, .low = 7, .high = 18}, {.value = 20, .low = 16, .high = 35}};
  const Estimate sum = sum_of_independent(parts);
  EXPECT_DOUBLE_EQ(sum.value, 30);
  EXPECT_DOUBLE_EQ(sum.low, 25);   // 3, 4 -> 5
  EXPECT_DOUBLE_EQ(sum.high, 47);  // 8, 15 -> 17
}

TEST(Estimate, a_correlation_of_one_half_lies_between) {
  const Estimate parts[] = {{.value = 10, .low = 9, .high = 11}, {.value = 10, .low = 9, .high = 11}};
  EXPECT_DOUBLE_EQ(sum_with_correlation(parts, 0.5).high, 20 + std::sqrt(3.0));  // 1 + 1 + 2 * 0.5
}

TEST(Estimate, the_sum_of_one_part_is_that_part) {
  RandomStream stream(3, "estimate");
  for (int trial = 0; trial < 500; ++trial) {
    const Estimate part = random_parts(stream).front();
    const Estimate sum = sum_with_correlation({&part, 1}, stream.uniform());
    EXPECT_EQ(sum.value, part.value);
    EXPECT_EQ(sum.low, part.low);
    EXPECT_EQ(sum.high, part.high);
    EXPECT_EQ(sum.kind, part.kind);
  }
}

TEST(Estimate, the_sum_of_nothing_is_exactly_zero) {
  const Estimate sum = sum_of_independent({});
  EXPECT_EQ(sum.value, 0);
  EXPECT_EQ(sum.low, 0);
  EXPECT_EQ(sum.high, 0);
  EXPECT_EQ(sum.kind, Confidence::measured);
}

TEST(Estimate, scaling_commutes_with_summing) {
  RandomStream stream(4, "estimate");
  for (int trial = 0; trial < 500; ++trial) {
    const std::vector<Estimate> parts = random_parts(stream);
    const double factor = stream.uniform(0, 100), correlation = stream.uniform();
    std::vector<Estimate> larger;
    for (const Estimate& part : parts) larger.push_back(scaled(part, factor));
    const Estimate first = scaled(sum_with_correlation(parts, correlation), factor);
    const Estimate last = sum_with_correlation(larger, correlation);
    const double rounding = 1e-12 * first.high;
    EXPECT_NEAR(first.value, last.value, rounding);
    EXPECT_NEAR(first.low, last.low, rounding);
    EXPECT_NEAR(first.high, last.high, rounding);
  }
}

TEST(Estimate, n_equal_independent_parts_grow_as_the_root_of_n) {
  const std::vector<Estimate> parts(100, Estimate{.value = 5, .low = 4, .high = 7});
  const Estimate sum = sum_of_independent(parts);
  EXPECT_NEAR(sum.low, 500 - 10, 1e-9);
  EXPECT_NEAR(sum.high, 500 + 20, 1e-9);
}

TEST(Estimate, a_part_below_one_percent_does_not_weaken_the_confidence) {
  const auto part = [](double value, Confidence kind) { return Estimate{value, value, value, kind}; };
  const Estimate small[] = {part(99.5, Confidence::measured), part(0.5, Confidence::roofline)};
  EXPECT_EQ(sum_of_independent(small).kind, Confidence::measured);
  const Estimate enough[] = {part(98, Confidence::measured), part(2, Confidence::roofline)};
  EXPECT_EQ(sum_of_independent(enough).kind, Confidence::roofline);
  const Estimate middle[] = {part(50, Confidence::interpolated), part(50, Confidence::extrapolated)};
  EXPECT_EQ(sum_of_independent(middle).kind, Confidence::extrapolated);
}

TEST(Estimate, the_larger_of_two_bounds_both_whatever_their_order) {
  RandomStream stream(5, "estimate");
  for (int trial = 0; trial < 500; ++trial) {
    const Estimate a = random_parts(stream).front();
    Estimate b = random_parts(stream).front();
    if (trial % 5 == 0) b.value = a.value;
    const Estimate one = larger_of(a, b), other = larger_of(b, a);
    EXPECT_EQ(one.value, std::max(a.value, b.value));
    EXPECT_EQ(one.low, std::max(a.low, b.low));
    EXPECT_EQ(one.high, std::max(a.high, b.high));
    EXPECT_EQ(one.kind, other.kind);
  }
}

TEST(Estimate, impossible_factors_and_correlations_are_our_own_defects) {
  const Estimate part = exactly(3);
  EXPECT_THROW(scaled(part, -1), InternalError);
  EXPECT_THROW(sum_with_correlation({&part, 1}, 1.5), InternalError);
  EXPECT_THROW(sum_with_correlation({&part, 1}, -0.1), InternalError);
}

TEST(Estimate, every_confidence_has_its_name) {
  EXPECT_EQ(confidence_name(Confidence::measured), "measured");
  EXPECT_EQ(confidence_name(Confidence::interpolated), "interpolated");
  EXPECT_EQ(confidence_name(Confidence::extrapolated), "extrapolated");
  EXPECT_EQ(confidence_name(Confidence::roofline), "roofline");
  EXPECT_LT(Confidence::measured, Confidence::roofline);
}

TEST(Estimate, a_product_widens_by_both_factors_and_by_no_more_than_both) {
  RandomStream stream(7, "product");
  for (int trial = 0; trial < 500; ++trial) {
    const std::vector<Estimate> a = random_parts(stream), b = random_parts(stream);
    const Estimate product = product_of_independent(a.front(), b.front());
    const double rounding = 1 + 1e-12;
    EXPECT_EQ(product.value, a.front().value * b.front().value);
    EXPECT_GE(product.high * rounding, a.front().high * b.front().value);
    EXPECT_LE(product.low, a.front().low * b.front().value * rounding);
    EXPECT_LE(product.high, a.front().high * b.front().high * rounding);
    EXPECT_GE(product.low * rounding, a.front().low * b.front().low);
    EXPECT_EQ(product.kind, std::max(a.front().kind, b.front().kind));
  }
}

TEST(Estimate, outside_of_what_was_measured_an_interval_is_twice_as_wide_in_logarithms) {
  RandomStream stream(8, "outside");
  for (int trial = 0; trial < 500; ++trial) {
    const Estimate inside = random_parts(stream).front(), outside = outside_measured(inside);
    EXPECT_EQ(outside.value, inside.value);
    EXPECT_NEAR(std::log(outside.high / outside.value), 2 * std::log(inside.high / inside.value), 1e-9);
    EXPECT_NEAR(outside.low * outside.value, inside.low * inside.low, 1e-12 * inside.value * inside.value);
    EXPECT_EQ(outside.kind, std::max(inside.kind, Confidence::extrapolated));
  }
  EXPECT_DOUBLE_EQ(outside_measured(exactly(3)).high, 3);
  EXPECT_EQ(outside_measured(exactly(0)).high, 0);
  EXPECT_THROW(outside_measured({.value = -1, .low = -2, .high = 0}), InternalError);
}

TEST(Estimate, a_factor_known_exactly_only_scales) {
  const Estimate part{.value = 3, .low = 2, .high = 5, .kind = Confidence::interpolated};
  const Estimate product = product_of_independent(part, exactly(4));
  EXPECT_NEAR(product.low, 8, 1e-12);
  EXPECT_NEAR(product.high, 20, 1e-12);
}

}  // namespace foretoken::base_estimate_test
