#include "base/units.h"

#include <concepts>

#include <gtest/gtest.h>

namespace foretoken::units_test {

template <class A, class B>
concept Addable = requires(A a, B b) {
  a + b;
};
template <class A, class B>
concept Comparable = requires(A a, B b) {
  a < b;
};
template <class A, class B>
concept Multipliable = requires(A a, B b) {
  a* b;
};

static_assert(Addable<Bytes, Bytes>);
static_assert(!Addable<Bytes, Seconds> && !Addable<Bytes, double> && !Comparable<Bytes, Flops>);
static_assert(!Multipliable<Seconds, Seconds>);
static_assert(!std::convertible_to<double, Seconds> && !std::convertible_to<Seconds, double>);

static_assert(std::same_as<decltype(Bytes(1) / BytesPerSecond(1)), Seconds>);
static_assert(std::same_as<decltype(Flops(1) / FlopsPerSecond(1)), Seconds>);
static_assert(std::same_as<decltype(Bytes(1) / Seconds(1)), BytesPerSecond>);
static_assert(std::same_as<decltype(Flops(1) / Seconds(1)), FlopsPerSecond>);
static_assert(std::same_as<decltype(Watts(1) * Seconds(1)), Joules>);
static_assert(std::same_as<decltype(Joules(1) / Seconds(1)), Watts>);
static_assert(std::same_as<decltype(Seconds(1) / Seconds(1)), double>);

TEST(Units, a_size_over_a_rate_is_the_time_and_back) {
  const Bytes size = gigabytes(335);
  const BytesPerSecond rate(3.35e12);
  EXPECT_DOUBLE_EQ((size / rate).value(), 0.1);
  EXPECT_DOUBLE_EQ((rate * (size / rate)).value(), size.value());
  EXPECT_DOUBLE_EQ((Flops(989e12) / FlopsPerSecond(989e12)).value(), 1);
  EXPECT_DOUBLE_EQ((FlopsPerSecond(2) * Seconds(3)).value(), 6);
  EXPECT_DOUBLE_EQ((Watts(700) * Seconds(2)).value(), 1400);
  EXPECT_DOUBLE_EQ((Joules(1400) / Seconds(2)).value(), 700);
}

TEST(Units, prefixes_are_decimal_and_binary_as_named) {
  EXPECT_EQ(gigabytes(1).value(), 1e9);
  EXPECT_EQ(gibibytes(1).value(), 1073741824);
  EXPECT_DOUBLE_EQ(milliseconds(3).value(), 0.003);
  EXPECT_DOUBLE_EQ(microseconds(3).value(), 0.000003);
}

TEST(Units, like_quantities_add_scale_and_compare) {
  Seconds time = Seconds(2) + Seconds(3) - Seconds(1);
  time += Seconds(1);
  time -= Seconds(2);
  EXPECT_EQ(time, Seconds(3));
  EXPECT_EQ(2 * time, time * 2);
  EXPECT_EQ(time / 2, Seconds(1.5));
  EXPECT_EQ(Seconds(6) / time, 2);
  EXPECT_LT(time, Seconds(4));
  EXPECT_EQ(Seconds(), Seconds(0));
}

}  // namespace foretoken::units_test
