#include "network/calibration/curve.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/random.h"

namespace foretoken::curve_test {

Curve random_curve(RandomStream& random, size_t points) {
  Curve curve;
  double x = 0;
  for (size_t i = 0; i < points; ++i) {
    x += 0.1 + random.uniform();
    curve.x.push_back(x);
    curve.y.push_back(4 * random.uniform() - 2);
  }
  return curve;
}

TEST(Curve, passes_through_its_points_and_never_leaves_the_range_of_the_two_around) {
  RandomStream random(1, "curves");
  for (int round = 0; round < 50; ++round) {
    const Curve curve = random_curve(random, 2 + static_cast<size_t>(8 * random.uniform()));
    for (size_t i = 0; i < curve.x.size(); ++i) EXPECT_NEAR(smooth_value(curve, curve.x[i]), curve.y[i], 1e-12);
    for (size_t i = 0; i + 1 < curve.x.size(); ++i) {
      const double x = curve.x[i] + random.uniform() * (curve.x[i + 1] - curve.x[i]);
      const double value = smooth_value(curve, x);
      EXPECT_GE(value, std::min(curve.y[i], curve.y[i + 1]) - 1e-12);
      EXPECT_LE(value, std::max(curve.y[i], curve.y[i + 1]) + 1e-12);
    }
  }
}

TEST(Curve, before_the_first_point_is_the_median_of_three_and_after_the_last_its_value) {
  const Curve curve{.x = {1, 2, 3, 4}, .y = {5, 1, 2, 9}};
  EXPECT_EQ(smooth_value(curve, 0), 2);
  EXPECT_EQ(smooth_value(curve, 10), 9);
  EXPECT_EQ(smooth_value({}, 3), 0);
}

TEST(Curve, straight_lines_go_on_with_the_slope_they_are_given) {
  const Curve curve{.x = {0, 1}, .y = {0, 3}};
  EXPECT_DOUBLE_EQ(linear_value(curve, 0.5, 1), 1.5);
  EXPECT_DOUBLE_EQ(linear_value(curve, 3, 2), 7);
  EXPECT_DOUBLE_EQ(linear_value(curve, -1, 2), -2);
}

TEST(Curve, a_spike_is_cut_to_its_neighbours_and_a_step_is_kept) {
  Curve spike{.x = {0, 1, 2, 3, 4}, .y = {1, 1.02, 2, 1.01, 1.03}};
  remove_spikes(spike, 0.2, spike.x.size());
  EXPECT_LT(spike.y[2], 1.1);
  Curve step{.x = {0, 1, 2, 3, 4}, .y = {1, 1, 2, 2.1, 2.2}};
  const std::vector<double> before = step.y;
  remove_spikes(step, 0.2, step.x.size());
  EXPECT_EQ(step.y, before);
  Curve late{.x = {0, 1, 2, 3, 4}, .y = {1, 1, 2, 1, 1}};
  remove_spikes(late, 0.2, 2);
  EXPECT_EQ(late.y[2], 2);
}

TEST(Curve, thinned_gives_every_point_back_within_the_tolerance_from_fewer) {
  Curve line;
  for (int i = 0; i < 20; ++i) line.x.push_back(i), line.y.push_back(0.5 * i);
  EXPECT_EQ(thinned(line, 1e-9).x.size(), 2U);
  RandomStream random(2, "thin");
  const Curve rough = random_curve(random, 12);
  const Curve fewer = thinned(rough, 0.3);
  for (size_t i = 0; i < rough.x.size(); ++i) EXPECT_NEAR(smooth_value(fewer, rough.x[i]), rough.y[i], 0.3);
}

}  // namespace foretoken::curve_test
