#include "plan/serving/day_plan.h"

#include <algorithm>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "plan/serving/search_test_support.h"

namespace foretoken::day_plan_test {

using testing::HasSubstr;

std::filesystem::path day_file(const std::string& text) {
  const auto file = std::filesystem::path(testing::TempDir()) / "foretoken_day_plan_test.csv";
  std::ofstream(file) << text;
  return file;
}

TEST(DayRates, a_sine_has_its_mean_and_its_peak) {
  const DayRates day = sine_day(10, 0.4);
  EXPECT_NEAR(day.mean(), 10, 1e-9);
  EXPECT_DOUBLE_EQ(day.peak(), 14);
  EXPECT_NEAR(day.at(0.75 * seconds_of_day), 6, 0.05);
}

TEST(DayRates, a_file_has_a_rate_from_each_hour_on) {
  const DayRates day = read_day(day_file("hour,requests_per_s\n0,2\n8.5,10\n20,4\n"));
  EXPECT_EQ(day.at(0), 2);
  EXPECT_EQ(day.at(9 * 3600), 10);
  EXPECT_EQ(day.at(23 * 3600), 4);
  EXPECT_NEAR(day.mean(), (8.5 * 2 + 11.5 * 10 + 4 * 4) / 24, 1e-9);
  const auto complaint = [](const std::string& text) -> std::string {
    try {
      read_day(day_file(text));
    } catch (const InputError& error) {
      return error.what();
    }
    return "nothing is wrong";
  };
  EXPECT_THAT(complaint("hour,requests_per_s\n1,2\n"), HasSubstr("0 in the first row"));
  EXPECT_THAT(complaint("hour,requests_per_s\n0,2\n0,3\n"), HasSubstr("an hour later"));
  EXPECT_THAT(complaint("hour,requests_per_s\n0,0\n"), HasSubstr("one rate above 0"));
  EXPECT_THAT(complaint("hour,rate\n0,1\n"), HasSubstr("requests_per_s"));
}

TEST(DayRates, a_short_spike_of_a_file_counts) {
  const DayRates day = read_day(day_file("hour,requests_per_s\n0,2\n10.01,100\n10.03,2\n24,500\n"));
  EXPECT_EQ(day.peak(), 100) << "the last row begins when the day has ended";
  EXPECT_NEAR(day.mean(), 2 + 98 * 0.02 / 24, 1e-9);
  EXPECT_NEAR(day.at(10.05 * 3600), 2 + 98 * 0.02 * 12, 1e-6);
  EXPECT_EQ(day.at(11 * 3600), 2);
}

TEST(DayRates, traffic_of_a_small_rate_brings_days_of_any_rate) {
  // Laps of these take so long that 64 bits of picoseconds hold a few hundred.
  const Traffic rare(random_requests(3, 2, 1e-4, 10, 10));
  const DayRates day{.requests_per_s = {1}};
  const std::vector<Request> requests = Traffic::taken_from(*rare.over_day(day, 1, 1), 200'000);
  EXPECT_NEAR(static_cast<double>(requests.size()), seconds_of_day, 2);
  EXPECT_TRUE(std::is_sorted(requests.begin(), requests.end(),
                             [](const Request& a, const Request& b) { return a.arrival < b.arrival; }));
}

TEST(DayRates, a_day_that_ends_without_requests_lasts_to_its_end) {
  const DayRates day{.requests_per_s = {0.1, 0.1, 0, 0}};
  const std::vector<Request> requests = Traffic::taken_from(*small_traffic().over_day(day, 1, 2), 1'000'000);
  ASSERT_GT(requests.size(), 2U);
  EXPECT_LE(to_seconds(requests[requests.size() - 2].arrival).value(), seconds_of_day / 4);
  EXPECT_DOUBLE_EQ(to_seconds(requests.back().arrival).value(), seconds_of_day / 2);
}

TEST(DayRates, traffic_brings_as_many_requests_in_each_hour_as_the_day_says) {
  const Traffic& traffic = small_traffic();
  const DayRates day = read_day(day_file("hour,requests_per_s\n0,0.05\n12,0.2\n"));
  const auto source = traffic.over_day(day, 1, 2);
  const std::vector<Request> requests = Traffic::taken_from(*source, 1'000'000);
  // Twice as fast: half the day's seconds at the same rates.
  const auto count = static_cast<double>(requests.size());
  EXPECT_NEAR(count, 0.125 * seconds_of_day / 2, 0.02 * count);
  int64_t in_first_half = 0;
  Picoseconds before = 0;
  for (const Request& request : requests) {
    EXPECT_GE(request.arrival, before);
    before = request.arrival;
    if (to_seconds(request.arrival).value() < seconds_of_day / 4) ++in_first_half;
  }
  EXPECT_LE(to_seconds(before).value(), seconds_of_day / 2);
  EXPECT_NEAR(static_cast<double>(in_first_half) / count, 0.2, 0.02);
}

TEST(DayPlan, an_autoscaler_pays_for_fewer_replicas_than_the_peak_needs) {
  ServingQuestion question = small_question();
  question.hardware[0].most_devices = 8;
  question.hardware[0].node_devices = 8;
  question.choices.tensor = {1};
  question.choices.separate_pools = false;
  question.choices.max_num_seqs = {1};  // few requests a second, so that a day takes a moment
  question.slos = parse_slos("ttft<2s@p95,tpot<40ms@p95", "slo");
  const ServingFacts facts = roofline_facts();
  // As much as three replicas serve at the peak.
  const ServingSearchResult alone =
      search_serving_layouts(question, *threaded_evaluator(question, facts, small_traffic(), 1));
  ASSERT_NE(alone.winner(), nullptr);
  const double each = alone.winner()->capacity.value / static_cast<double>(alone.winner()->layout.pool.replicas);
  const DaySettings settings{.rates = sine_day(1.5 * each, 0.9), .cold_start_s = 60};
  question.rate = settings.rates.peak();
  question.objective = PlanObjective::cost;
  const ServingSearchResult result =
      search_serving_layouts(question, *threaded_evaluator(question, facts, small_traffic(), 1));
  ASSERT_NE(result.winner(), nullptr);
  const DayPlan plan = plan_day(question, small_traffic(), facts, result, settings);
  ASSERT_EQ(plan.layouts.size(), 1U);
  const DayOfLayout& day = plan.layouts.front();
  EXPECT_EQ(day.layout, result.winner()->layout);
  EXPECT_GE(day.fixed.most_replicas, 3);
  EXPECT_DOUBLE_EQ(*day.fixed.usd, 24.0 * static_cast<double>(day.layout.devices()));
  ASSERT_TRUE(day.scaled.has_value());
  EXPECT_EQ(day.scaled->least_replicas, 1);
  EXPECT_GT(day.scaled->most_replicas, 2);
  EXPECT_GT(day.scaled->starts, 0);
  EXPECT_LT(*day.scaled->usd, 0.85 * *day.fixed.usd);
  EXPECT_GT(*day.scaled->usd, 0.3 * *day.fixed.usd);
  EXPECT_GT(*day.fixed.good_share, 0.9);
  EXPECT_GT(*day.scaled->good_share, 0.8);
  EXPECT_LE(*day.scaled->good_share, 1);
  // By closed form the replicas follow the rate.
  const ServingSearchResult quick =
      search_serving_layouts(question, *threaded_evaluator(question, facts, small_traffic(), 1), {.closed_form = true});
  const DayPlan formula = plan_day(question, small_traffic(), facts, quick, settings);
  ASSERT_TRUE(formula.layouts.front().scaled.has_value());
  EXPECT_FALSE(formula.layouts.front().scaled->good_share);
  EXPECT_FALSE(formula.layouts.front().scaled->starts);
  EXPECT_LT(*formula.layouts.front().scaled->usd, *formula.layouts.front().fixed.usd);
}

// A day of the small question's layout with so many replicas, as if a search had found it; each serves 1 request/s.
class DayOfReplicas : public testing::Test {
 protected:
  static DayOfLayout day_of(int64_t replicas, const DaySettings& settings) {
    ServingQuestion question = small_question();
    question.hardware[0].most_devices = replicas;
    question.slos = parse_slos("ttft<2s@p95,tpot<40ms@p95", "slo");
    ServingSearchResult found;
    found.points.resize(1);
    found.ranking = {0};
    PlanPoint& point = found.points.front();
    point.layout.pool = {.engine = {.device = question.hardware[0].device.name, .engine = "vllm"},
                         .replicas = replicas};
    point.capacity.value = static_cast<double>(replicas);
    return plan_day(question, small_traffic(), roofline_facts(), found, settings).layouts.front();
  }
  static DayRun scaled_day(int64_t replicas, const DaySettings& settings) {
    const DayOfLayout day = day_of(replicas, settings);
    EXPECT_TRUE(day.scaled.has_value()) << day.why_not_scaled;
    return day.scaled.value_or(DayRun{});
  }
};

TEST_F(DayOfReplicas, the_fewest_replicas_are_those_of_all_parts) {
  DaySettings settings{.rates = {.requests_per_s = {0.01}}, .least_replicas = 4, .cold_start_s = 60};
  const DayRun four = scaled_day(32, settings);
  EXPECT_EQ(four.least_replicas, 4);
  EXPECT_EQ(four.most_replicas, 4);
  EXPECT_NEAR(four.mean_held, 4, 1e-6);
  settings.least_replicas = 6;
  EXPECT_EQ(scaled_day(32, settings).least_replicas, 8) << "parts are equal";
  settings.least_replicas = 100;
  EXPECT_EQ(scaled_day(32, settings).least_replicas, 32) << "no more than there are";
}

TEST_F(DayOfReplicas, parts_that_are_not_whole_have_no_more_replicas_than_all) {
  const DaySettings all{.rates = {.requests_per_s = {0.01}}, .least_replicas = 17, .cold_start_s = 60};
  const DayRun seventeen = scaled_day(17, all);
  EXPECT_EQ(seventeen.least_replicas, 17);
  EXPECT_EQ(seventeen.most_replicas, 17);
  EXPECT_NEAR(seventeen.gpu_hours, 24.0 * 17, 1e-6);
}

TEST_F(DayOfReplicas, a_night_without_requests_is_paid_for) {
  const DaySettings half{.rates = {.requests_per_s = {0.01, 0.01, 0, 0}}, .least_replicas = 3, .cold_start_s = 60};
  EXPECT_NEAR(scaled_day(4, half).gpu_hours, 24.0 * 3, 1e-6);
  // But not more of it than the autoscaler keeps.
  const DaySettings busy{.rates = {.requests_per_s = {1.5, 1.5, 0, 0}}, .cold_start_s = 60};
  const DayRun falling = scaled_day(4, busy);
  EXPECT_EQ(falling.least_replicas, 1);
  EXPECT_NEAR(falling.gpu_hours, 12 * static_cast<double>(falling.most_replicas) + 12, 3);
}

TEST_F(DayOfReplicas, a_day_of_too_many_requests_is_not_simulated) {
  const DayOfLayout day = day_of(8, {.rates = {.requests_per_s = {1e6}}});
  EXPECT_FALSE(day.scaled);
  EXPECT_FALSE(day.fixed.good_share);
  EXPECT_THAT(day.why_not_scaled, HasSubstr("too long to simulate"));
}

}  // namespace foretoken::day_plan_test
