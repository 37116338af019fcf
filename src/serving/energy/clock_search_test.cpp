#include "serving/energy/clock_search.h"

#include <gtest/gtest.h>

namespace foretoken::clock_search_test {

ClockTrial trial(double mhz, double good_share, double joules) {
  ClockTrial result{.mhz = mhz, .metrics = {}, .energy = {}};
  result.metrics.completed = 1000;
  result.metrics.request_throughput = 10;
  result.metrics.goodput = 10 * good_share;
  result.energy.facility_joules_per_output_token = exactly(joules);
  return result;
}

TEST(ClockSearch, takes_the_least_energy_among_clocks_that_meet_the_goals) {
  const ClockTrial trials[] = {trial(1980, 1, 5), trial(1800, 0.995, 4), trial(1600, 0.99, 3), trial(1400, 0.98, 2)};
  EXPECT_EQ(best_clock(trials), 2u);
}

TEST(ClockSearch, requests_that_failed_meet_no_goal) {
  ClockTrial shed = trial(1400, 1, 2);
  shed.metrics.rejected = 100;
  const ClockTrial trials[] = {trial(1980, 1, 5), shed};
  EXPECT_EQ(best_clock(trials), 0u);
}

TEST(ClockSearch, a_lower_clock_that_takes_more_energy_is_not_better) {
  const ClockTrial trials[] = {trial(1980, 1, 5), trial(1800, 1, 4), trial(1600, 1, 4.5)};
  EXPECT_EQ(best_clock(trials), 1u);
}

TEST(ClockSearch, where_no_clock_meets_the_goals_it_takes_the_one_that_misses_least) {
  const ClockTrial trials[] = {trial(1980, 0.9, 5), trial(1800, 0.8, 4), trial(1600, 0.7, 3)};
  EXPECT_EQ(best_clock(trials), 0u);
  EXPECT_FALSE(trials[0].meets_goals());
}

TEST(ClockSearch, tries_clocks_from_the_top_down) {
  const std::vector<double> clocks = clocks_to_try(1980);
  EXPECT_EQ(clocks.front(), 1980);
  EXPECT_EQ(clocks.back(), 1287);
  for (size_t i = 1; i < clocks.size(); ++i) EXPECT_LT(clocks[i], clocks[i - 1]);
}

}  // namespace foretoken::clock_search_test
