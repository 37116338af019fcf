#include "accelerator/row_stationary/run_length.h"

#include <gtest/gtest.h>

#include "base/random.h"

namespace foretoken::run_length_test {

// Codes a stream as the chip does and counts pairs.
double coded_ratio_of_stream(double zero_share, int values, RandomStream& random) {
  int pairs = 0, run = 0;
  for (int i = 0; i < values; ++i) {
    const bool zero = random.uniform() < zero_share;
    if (zero && run < 31) {
      ++run;
    } else {
      ++pairs;
      run = 0;
    }
  }
  return pairs * (64.0 / 3) / (16.0 * values);
}

TEST(RunLength, the_formula_is_what_coding_a_random_stream_gives) {
  RandomStream random(1, "run_length_test");
  for (const double zeros : {0.0, 0.25, 0.5, 0.75, 0.9, 0.97, 1.0}) {
    const double coded = coded_ratio_of_stream(zeros, 400'000, random);
    EXPECT_NEAR(run_length_ratio(zeros) / coded, 1, 0.02) << zeros;
  }
}

TEST(RunLength, data_without_zeros_grows_by_a_third_and_more_zeros_never_take_more_room) {
  EXPECT_DOUBLE_EQ(run_length_ratio(0), 4.0 / 3);
  EXPECT_DOUBLE_EQ(run_length_ratio(1), 4.0 / 3 / 32);
  for (int percent = 1; percent <= 100; ++percent) {
    EXPECT_LT(run_length_ratio(percent / 100.0), run_length_ratio((percent - 1) / 100.0));
  }
}

}  // namespace foretoken::run_length_test
