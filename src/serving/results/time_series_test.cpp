#include "serving/results/time_series.h"

#include <gtest/gtest.h>

#include "base/simulated_time.h"

namespace foretoken::time_series_test {

Picoseconds at(double seconds) {
  return to_picoseconds(Seconds(seconds));
}

TEST(TimeSeries, requests_of_steps_that_overlap_in_a_pipeline_count_once) {
  TimeSeries series;
  for (const double begin : {0.0, 1.0, 2.0, 3.0})
    series.step_ran({.begin = at(begin), .end = at(begin + 3), .decode_tokens = 6, .running = 8, .waiting = 2});
  const std::vector<TimePoint> points = series.points();
  ASSERT_GE(points.size(), 6U);
  double tokens = 0;
  for (size_t i = 0; i < 6; ++i) {
    EXPECT_NEAR(points[i].running, 8, 1e-9) << i;
    EXPECT_NEAR(points[i].waiting, 2, 1e-9) << i;
    tokens += points[i].decode_tokens_per_s;
  }
  EXPECT_NEAR(tokens, 4 * 6, 1e-9) << "every step's own tokens count";
}

TEST(TimeSeries, replicas_add_up) {
  TimeSeries series;
  series.step_ran({.replica = 0, .begin = 0, .end = at(1), .running = 3});
  series.step_ran({.replica = 1, .begin = 0, .end = at(1), .running = 4});
  EXPECT_NEAR(series.points()[0].running, 7, 1e-9);
}

}  // namespace foretoken::time_series_test
