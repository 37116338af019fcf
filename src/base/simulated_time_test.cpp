#include "base/simulated_time.h"

#include <limits>

#include <gtest/gtest.h>

#include "base/error.h"

namespace foretoken::simulated_time_test {

TEST(SimulatedTime, a_time_is_rounded_to_the_nearest_picosecond_and_back) {
  EXPECT_EQ(to_picoseconds(microseconds(1.5)), 1'500'000);
  EXPECT_EQ(to_picoseconds(Seconds(1.6e-12)), 2);
  EXPECT_EQ(to_picoseconds(Seconds(0)), 0);
  for (const Picoseconds time : {Picoseconds{1}, Picoseconds{999'999'999'999}, Picoseconds{86'400'000'000'000'000}}) {
    EXPECT_EQ(to_picoseconds(to_seconds(time)), time);
  }
}

TEST(SimulatedTime, negative_endless_and_unknown_times_are_refused) {
  for (const double seconds :
       {-1e-9, 1e9, std::numeric_limits<double>::infinity(), std::numeric_limits<double>::quiet_NaN()}) {
    EXPECT_THROW(to_picoseconds(Seconds(seconds)), InputError) << seconds;
  }
}

TEST(SimulatedTime, nothing_happens_after_the_end_of_the_clock) {
  EXPECT_EQ(later(5, 7), 12);
  EXPECT_EQ(later(end_of_time - 7, 7), end_of_time);
  EXPECT_THROW(later(end_of_time - 7, 8), InputError);
}

}  // namespace foretoken::simulated_time_test
