#include "base/rounding.h"

#include <limits>

#include <gtest/gtest.h>

namespace foretoken {
namespace {

TEST(Rounding, keeps_the_significant_digits_asked_for) {
  EXPECT_EQ(rounded_to_digits(123456.7, 3), 123000);
  EXPECT_EQ(rounded_to_digits(-0.00123456, 4), -0.001235);
  EXPECT_EQ(rounded_to_digits(2.5, 12), 2.5);
  EXPECT_EQ(rounded_to_digits(0, 4), 0);
}

TEST(Rounding, leaves_what_is_no_number_as_it_is) {
  const double infinite = std::numeric_limits<double>::infinity();
  EXPECT_EQ(rounded_to_digits(infinite, 3), infinite);
}

}  // namespace
}  // namespace foretoken
