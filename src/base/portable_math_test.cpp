#include "base/portable_math.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include <gtest/gtest.h>

#include "base/random.h"

namespace foretoken::portable_math_test {

constexpr double infinity = std::numeric_limits<double>::infinity();

// Distance in representable numbers, for two of the same sign.
double ulps_apart(double a, double b) {
  if (a == b) return 0;
  return std::abs(static_cast<double>(std::bit_cast<int64_t>(a) - std::bit_cast<int64_t>(b)));
}

// Both we and the library are off by less than one ulp.
TEST(PortableMath, log_is_within_an_ulp_of_the_library) {
  RandomStream stream(1, "portable math");
  double worst = 0;
  const auto check = [&](double x) { worst = std::max(worst, ulps_apart(portable_log(x), std::log(x))); };
  for (int trial = 0; trial < 100000; ++trial) {
    check(std::ldexp(stream.uniform(0.5, 1), static_cast<int>(stream.below(2097)) - 1073));
    check(stream.uniform(0.5, 2));
    check(1 + stream.normal(0, 1e-6));
  }
  EXPECT_LE(worst, 1);
}

TEST(PortableMath, logs_to_other_bases_are_within_an_ulp_of_the_library) {
  RandomStream stream(4, "portable math");
  double worst = 0;
  for (int trial = 0; trial < 100000; ++trial) {
    const double x = stream.lognormal(0, 20);
    worst = std::max({worst, ulps_apart(portable_log2(x), std::log2(x)), ulps_apart(portable_log10(x), std::log10(x))});
  }
  EXPECT_LE(worst, 2);  // the library's log10 is off by up to 2
}

TEST(PortableMath, logs_of_powers_of_their_base_are_whole) {
  for (int power = -1074; power <= 1023; ++power) EXPECT_EQ(portable_log2(std::ldexp(1.0, power)), power);
  double power_of_ten = 1;
  for (int power = 0; power <= 22; ++power, power_of_ten *= 10) EXPECT_EQ(portable_log10(power_of_ten), power);
}

TEST(PortableMath, hypot_is_within_two_ulps_of_the_library_over_the_whole_range) {
  RandomStream stream(5, "portable math");
  double worst = 0;
  for (int trial = 0; trial < 100000; ++trial) {
    const double scale = std::ldexp(1.0, static_cast<int>(stream.below(2000)) - 1000);
    const double x = scale * stream.normal(0, 1), y = scale * stream.normal(0, 1);
    worst = std::max(worst, ulps_apart(portable_hypot(x, y), std::hypot(x, y)));
  }
  EXPECT_LE(worst, 2);
  EXPECT_EQ(portable_hypot(3, -4), 5);
  EXPECT_DOUBLE_EQ(portable_hypot(2, -3, 6), 7);
  EXPECT_EQ(portable_hypot(-0.25, 0), 0.25);
  EXPECT_EQ(portable_hypot(0, 0), 0);
  EXPECT_EQ(portable_hypot(-infinity, 1), infinity);
  EXPECT_TRUE(std::isnan(portable_hypot(std::nan(""), 1)));
}

TEST(PortableMath, exp_is_within_an_ulp_of_the_library) {
  RandomStream stream(2, "portable math");
  double worst = 0;
  for (int trial = 0; trial < 100000; ++trial) {
    for (const double x : {stream.uniform(-708, 709.7), stream.uniform(-1, 1), stream.normal(0, 1e-8)}) {
      worst = std::max(worst, ulps_apart(portable_exp(x), std::exp(x)));
    }
  }
  EXPECT_LE(worst, 1);
}

TEST(PortableMath, pow_is_within_an_ulp_of_the_library) {
  RandomStream stream(3, "portable math");
  double worst = 0;
  for (int trial = 0; trial < 100000; ++trial) {
    const double base = stream.lognormal(0, 10);
    const double exponent = stream.normal(0, 20);
    const double expected = std::pow(base, exponent);
    if (expected > 1e-300 && expected < 1e300)
      worst = std::max(worst, ulps_apart(portable_pow(base, exponent), expected));
    const double near_one = 1 + stream.normal(0, 1e-9), large = stream.normal(0, 1e10);
    worst = std::max(worst, ulps_apart(portable_pow(near_one, large), std::pow(near_one, large)));
  }
  EXPECT_LE(worst, 1);
}

TEST(PortableMath, small_results_round_like_the_library_down_to_zero) {
  for (double x = -745; x < -708; x += 0.37) EXPECT_LE(ulps_apart(portable_exp(x), std::exp(x)), 1) << x;
  EXPECT_EQ(portable_exp(-800), 0);
  EXPECT_EQ(portable_log(5e-324), std::log(5e-324));
}

TEST(PortableMath, whole_powers_are_exact_where_they_fit) {
  for (int base = 1; base <= 30; ++base) {
    double expected = 1;
    for (int exponent = 0; exponent <= 10; ++exponent) {
      EXPECT_EQ(portable_pow(base, exponent), expected) << base << "^" << exponent;
      expected *= base;
    }
  }
  EXPECT_EQ(portable_pow(2, -1074), 5e-324);
  EXPECT_EQ(portable_pow(4, 0.5), 2);
}

TEST(PortableMath, limits_behave_as_in_the_library) {
  EXPECT_EQ(portable_log(1), 0);
  EXPECT_EQ(portable_log(0), -infinity);
  EXPECT_EQ(portable_log2(0), -infinity);
  EXPECT_TRUE(std::isnan(portable_log10(-1)));
  EXPECT_EQ(portable_log(infinity), infinity);
  EXPECT_TRUE(std::isnan(portable_log(-1)));
  EXPECT_TRUE(std::isnan(portable_log(std::nan(""))));
  EXPECT_EQ(portable_exp(0), 1);
  EXPECT_EQ(portable_exp(710), infinity);
  EXPECT_EQ(portable_exp(infinity), infinity);
  EXPECT_EQ(portable_exp(-infinity), 0);
  EXPECT_TRUE(std::isnan(portable_exp(std::nan(""))));
  for (const double base : {0.0, 1e-300, 0.5, 1.0, 2.0, 1e300, infinity}) {
    for (const double exponent : {-infinity, -1e300, -2.0, -0.0, 0.0, 3.0, 1e300, infinity}) {
      EXPECT_EQ(portable_pow(base, exponent), std::pow(base, exponent)) << base << "^" << exponent;
    }
  }
  EXPECT_TRUE(std::isnan(portable_pow(-1, 0.5)));
  EXPECT_TRUE(std::isnan(portable_pow(std::nan(""), 2)));
  EXPECT_TRUE(std::isnan(portable_pow(2, std::nan(""))));
}

// The same bits on every machine: a hash of all results over a grid, pinned.
TEST(PortableMath, known_answers) {
  uint64_t logs = 0, exps = 0, powers = 0;
  for (int i = 1; i <= 20000; ++i) {
    logs = logs * 31 + std::bit_cast<uint64_t>(portable_log(i * 0.37));
    exps = exps * 31 + std::bit_cast<uint64_t>(portable_exp(i * 0.03 - 300));
    powers = powers * 31 + std::bit_cast<uint64_t>(portable_pow(i * 0.01, 7.3 - i * 0.001));
  }
  EXPECT_EQ(logs, 14355234813904304708u);
  EXPECT_EQ(exps, 136247022454004144u);
  EXPECT_EQ(powers, 6705049402122976719u);
}

}  // namespace foretoken::portable_math_test
