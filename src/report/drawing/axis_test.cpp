#include "report/drawing/axis.h"

#include <cmath>

#include <gtest/gtest.h>

namespace foretoken::axis_test {

TEST(Axis, value_undoes_position) {
  const Axis axes[] = {Axis::linear(-2, 5, 100, 20), Axis::logarithmic(0.03, 4e15, 0, 700)};
  for (const Axis& axis : axes) {
    for (const double position : {0.1, 0.5, 0.93}) {
      const double value = axis.value(20 + position * 80);
      EXPECT_NEAR(axis.position(value), 20 + position * 80, 1e-9);
    }
  }
}

TEST(Axis, what_lies_beyond_the_ends_is_held_there) {
  const Axis axis = Axis::logarithmic(1, 100, 10, 20);
  EXPECT_EQ(axis.position(1e-3), 10);
  EXPECT_EQ(axis.position(1e9), 20);
  EXPECT_NEAR(axis.position(10), 15, 1e-12);
}

TEST(Axis, logarithmic_ticks_are_the_powers_of_ten_within) {
  EXPECT_EQ(Axis::logarithmic(0.5, 2000, 0, 1).ticks(), (std::vector<double>{1, 10, 100, 1000}));
  EXPECT_EQ(Axis::logarithmic(1, 10, 0, 1).ticks(), (std::vector<double>{1, 10}));
  EXPECT_EQ(Axis::logarithmic(30, 60, 0, 1).small_ticks(), (std::vector<double>{30, 40, 50, 60}));
}

TEST(Axis, linear_ticks_are_round_numbers_and_few) {
  EXPECT_EQ(Axis::linear(0, 100, 0, 1).ticks().size(), 11u);
  for (const double most : {0.37, 1.0, 7.0, 42.0, 999.0, 12345.0}) {
    const std::vector<double> ticks = Axis::linear(0, most, 0, 1).ticks();
    EXPECT_GE(ticks.size(), 4u) << most;
    EXPECT_LE(ticks.size(), 11u) << most;
  }
}

TEST(Axis, decades_are_exact_at_powers_of_ten) {
  for (int n = -12; n <= 18; ++n) {
    EXPECT_EQ(decade_of(power_of_ten(n)), n);
    EXPECT_EQ(decade_of(std::nextafter(power_of_ten(n), 0)), n - 1);
  }
}

}  // namespace foretoken::axis_test
