#include "serving/load/arrivals.h"

#include <cmath>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include "base/error.h"
#include "base/simulated_time.h"
#include "base/statistics.h"

namespace foretoken::arrivals_test {

std::vector<double> arrival_seconds(const ArrivalSettings& settings, uint64_t seed = 1) {
  Arrivals arrivals(settings, seed);
  std::vector<double> times;
  for (int64_t i = 0; i < settings.count; ++i) times.push_back(to_seconds(arrivals.next()).value());
  return times;
}

std::vector<double> gaps_of(const std::vector<double>& times) {
  std::vector<double> gaps;
  for (size_t i = 1; i < times.size(); ++i) gaps.push_back(times[i] - times[i - 1]);
  return gaps;
}

TEST(Arrivals, without_a_rate_all_come_at_once) {
  for (const double time : arrival_seconds({.count = 5})) EXPECT_EQ(time, 0);
}

TEST(Arrivals, the_last_of_a_constant_rate_comes_at_count_over_rate) {
  for (const double burstiness : {0.2, 1.0, 7.0}) {
    const std::vector<double> times = arrival_seconds({.rate = 4, .burstiness = burstiness, .count = 1000});
    EXPECT_NEAR(times.back(), 250, 1e-9);
    EXPECT_TRUE(std::is_sorted(times.begin(), times.end()));
  }
}

TEST(Arrivals, gaps_vary_by_one_over_the_root_of_burstiness) {
  for (const double burstiness : {0.25, 1.0, 4.0}) {
    const auto gaps = gaps_of(arrival_seconds({.rate = 10, .burstiness = burstiness, .count = 40000}));
    EXPECT_NEAR(mean(gaps), 0.1, 0.001);
    EXPECT_NEAR(standard_deviation(gaps) / mean(gaps), 1 / std::sqrt(burstiness), 0.05 / std::sqrt(burstiness));
  }
}

TEST(Arrivals, seeds_differ_and_one_seed_repeats) {
  const ArrivalSettings settings{.rate = 3, .count = 50};
  EXPECT_EQ(arrival_seconds(settings, 7), arrival_seconds(settings, 7));
  EXPECT_NE(arrival_seconds(settings, 7), arrival_seconds(settings, 8));
}

TEST(Arrivals, ramps_begin_and_end_at_their_rates) {
  for (const RateShape shape : {RateShape::linear, RateShape::exponential}) {
    const auto gaps =
        gaps_of(arrival_seconds({.burstiness = 100, .shape = shape, .ramp_start = 2, .ramp_end = 50, .count = 20000}));
    const std::vector<double> first(gaps.begin(), gaps.begin() + 100), last(gaps.end() - 100, gaps.end());
    EXPECT_NEAR(mean(first), 1.0 / 2, 0.03);
    EXPECT_NEAR(mean(last), 1.0 / 50, 0.001);
  }
}

TEST(Arrivals, an_exponential_ramp_is_slower_in_the_middle_than_a_linear_one) {
  const ArrivalSettings linear{
      .burstiness = 1000, .shape = RateShape::linear, .ramp_start = 1, .ramp_end = 100, .count = 1001};
  ArrivalSettings exponential = linear;
  exponential.shape = RateShape::exponential;
  EXPECT_NEAR(gaps_of(arrival_seconds(exponential))[500], 1.0 / 10, 0.02);
  EXPECT_NEAR(gaps_of(arrival_seconds(linear))[500], 1.0 / 50.5, 0.004);
}

TEST(Arrivals, a_day_has_its_busy_half_first_and_keeps_its_mean) {
  const std::vector<double> times =
      arrival_seconds({.rate = 10, .shape = RateShape::daily, .swing = 0.8, .period_s = 1000, .count = 20000});
  double first_half = 0, days = 2;
  for (const double time : times) first_half += std::fmod(time, 1000) < 500 ? 1 : 0;
  // The mean of a sine over its upper half is 2/pi.
  EXPECT_NEAR(first_half / 20000, 0.5 + 0.8 / std::acos(-1.0), 0.01);
  EXPECT_NEAR(times.back(), 1000 * days, 40);
}

TEST(Arrivals, settings_that_have_no_meaning_are_refused_by_field) {
  const auto refused = [](const ArrivalSettings& settings) {
    try {
      check_arrivals(settings);
    } catch (const InputError& error) {
      return error.problem().field;
    }
    return std::string("accepted");
  };
  EXPECT_EQ(refused({.burstiness = 0}), "burstiness");
  EXPECT_EQ(refused({.burstiness = std::numeric_limits<double>::quiet_NaN()}), "burstiness");
  EXPECT_EQ(refused({.rate = 0}), "request_rate");
  EXPECT_EQ(refused({.rate = -1}), "request_rate");
  EXPECT_EQ(refused({.count = 0}), "num_prompts");
  EXPECT_EQ(refused({.shape = RateShape::linear, .ramp_end = 3}), "ramp_up_start_rps");
  EXPECT_EQ(refused({.shape = RateShape::daily}), "request_rate");
  EXPECT_EQ(refused({}), "accepted");
}

TEST(Arrivals, names_of_shapes_read_back) {
  for (const std::string& name : rate_shape_names()) EXPECT_TRUE(rate_shape_from_name(name)) << name;
  EXPECT_FALSE(rate_shape_from_name("weekly"));
}

// One arrival every ten seconds, ten million days long each.
TEST(Arrivals, days_much_shorter_than_a_gap_bring_the_mean_rate_at_once) {
  const std::vector<double> times = arrival_seconds(
      {.rate = 0.1, .burstiness = 1e6, .shape = RateShape::daily, .swing = 0.9, .period_s = 1e-6, .count = 50});
  for (const double gap : gaps_of(times)) EXPECT_NEAR(gap, 10, 0.1);
  EXPECT_THROW(check_arrivals({.rate = 1, .shape = RateShape::daily, .period_s = 1e-300}), InputError);
}

TEST(Arrivals, more_requests_than_can_be_drawn_are_refused_before_they_are) {
  EXPECT_THROW(Arrivals({.rate = 1, .count = 2'000'000'000}, 1), InputError);
}

TEST(Arrivals, a_rate_that_leads_beyond_simulated_time_is_named) {
  Arrivals arrivals({.rate = 1e-7, .count = 3}, 1);
  try {
    for (int i = 0; i < 3; ++i) arrivals.next();
    FAIL() << "within 90 days";
  } catch (const InputError& error) {
    EXPECT_EQ(error.problem().field, "request_rate");
  }
}

}  // namespace foretoken::arrivals_test
