#include "plan/accelerator/gaussian_process.h"

#include <gtest/gtest.h>

#include <cmath>

namespace foretoken::gaussian_process_test {

TEST(GaussianProcess, is_sure_where_it_knows_and_unsure_far_away) {
  const std::vector<std::vector<double>> points = {{0}, {0.3}, {0.7}, {1}};
  const std::vector<double> values = {2, 1, 3, 2.5};
  const GaussianProcess process(points, values, {0.3}, 1e-6);
  for (size_t i = 0; i < points.size(); ++i) {
    EXPECT_NEAR(process.guess(points[i]).mean, values[i], 1e-3);
    EXPECT_LT(process.guess(points[i]).deviation, 0.01);
  }
  EXPECT_GT(process.guess(std::vector<double>{5.0}).deviation, 0.5);
  EXPECT_NEAR(process.guess(std::vector<double>{50.0}).mean, 2.125, 1e-6);  // the mean of all
}

TEST(GaussianProcess, believing_its_own_guess_changes_no_mean_but_makes_it_sure) {
  const GaussianProcess process({{0}, {0.4}, {1}}, {1, 0, 2}, {0.5}, 1e-4);
  const std::vector<double> there = {0.7};
  const GaussianProcess believer = process.believing(there);
  EXPECT_NEAR(believer.guess(there).mean, process.guess(there).mean, 0.02);
  EXPECT_LT(believer.guess(there).deviation, 0.2 * process.guess(there).deviation);
}

TEST(GaussianProcess, lengths_learn_which_number_matters) {
  std::vector<std::vector<double>> points;
  std::vector<double> values;
  for (int i = 0; i < 5; ++i) {
    for (int j = 0; j < 5; ++j) {
      points.push_back({i / 4.0, j / 4.0});
      values.push_back(std::sin(6.0 * i / 4.0));
    }
  }
  std::vector<double> lengths = {0.6, 0.6};
  for (int round = 0; round < 4; ++round) {
    const GaussianProcess process = with_better_lengths(points, values, lengths, 1e-3);
    lengths.assign(process.lengths().begin(), process.lengths().end());
  }
  EXPECT_GT(lengths[1], 4 * lengths[0]);
}

TEST(ExpectedImprovement, grows_with_what_is_expected_and_with_doubt) {
  EXPECT_DOUBLE_EQ(expected_improvement({.mean = 1, .deviation = 0}, 3), 2);
  EXPECT_DOUBLE_EQ(expected_improvement({.mean = 4, .deviation = 0}, 3), 0);
  EXPECT_NEAR(expected_improvement({.mean = 3, .deviation = 1}, 3), 0.39894228, 1e-8);  // the density at zero
  EXPECT_GT(expected_improvement({.mean = 4, .deviation = 2}, 3), expected_improvement({.mean = 4, .deviation = 1}, 3));
}

}  // namespace foretoken::gaussian_process_test
