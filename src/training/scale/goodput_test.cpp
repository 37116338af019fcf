#include "training/scale/goodput.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/statistics.h"
#include "training/scale/test_run_simulation.h"

namespace foretoken::goodput_test {

constexpr double minute = 60, hour = 3600, day = 86400;

RunConditions plain_run() {
  return {.mtbf_seconds = 3.09 * hour,
          .blocking_seconds = 30,
          .recoveries = {{.name = "restart", .share = 1, .seconds = 10 * minute}}};
}

RunConditions involved_run() {
  return {
      .mtbf_seconds = 2 * hour,
      .blocking_seconds = 5,
      .lag_seconds = 180,
      .recoveries = {{.name = "quick", .share = 0.7, .seconds = 200}, {.name = "slow", .share = 0.3, .seconds = 2400}},
      .repeat_probability = 0.2,
      .planned_stops_per_second = 1 / day,
      .planned_stop_seconds = 900};
}

// Daly 2006, equation 37; mtbf for blocking >= 2 mtbf.
double daly_interval_seconds(double blocking_seconds, double mtbf_seconds) {
  if (blocking_seconds >= 2 * mtbf_seconds) return mtbf_seconds;
  const double ratio = blocking_seconds / (2 * mtbf_seconds);
  return young_interval_seconds(blocking_seconds, mtbf_seconds) * (1 + std::sqrt(ratio) / 3 + ratio / 9) -
         blocking_seconds;
}

// blocking / interval + (interval / 2 + recovery) / mtbf: the sum people do on paper.
double first_order_waste(double blocking_seconds, double interval_seconds, double recovery_seconds,
                         double mtbf_seconds) {
  return blocking_seconds / interval_seconds + (0.5 * interval_seconds + recovery_seconds) / mtbf_seconds;
}

double lost_in_all(const std::vector<LostTime>& lost) {
  double sum = 0;
  for (const LostTime& part : lost) sum += part.share;
  return sum;
}

// Llama 3's interruption rate, 30 s a checkpoint, 10 minutes to recover: 13.6 minutes, 3.7% + 3.7% + 5.4%.
TEST(Goodput, the_worked_example_on_paper) {
  const double young = young_interval_seconds(30, 3.09 * hour);
  EXPECT_NEAR(young / minute, 13.6, 0.05);
  EXPECT_NEAR(first_order_waste(30, young, 10 * minute, 3.09 * hour), 0.127, 0.0005);
  // Exactly, a little less: failures do not fall into recoveries twice.
  EXPECT_NEAR(1 - goodput(plain_run(), young).effective, 0.127, 0.01);
}

TEST(Goodput, intervals_of_young_and_daly_are_near_the_best_one) {
  for (const double blocking : {1.0, 10.0, 60.0, 600.0}) {
    RunConditions run = plain_run();
    run.blocking_seconds = blocking;
    const double best = best_interval_seconds(run);
    EXPECT_NEAR(daly_interval_seconds(blocking, run.mtbf_seconds), best, 0.005 * best) << blocking;
    const double most = goodput(run, best).effective;
    EXPECT_GE(most, goodput(run, young_interval_seconds(blocking, run.mtbf_seconds)).effective);
    EXPECT_GE(most, goodput(run, best * 1.05).effective);
    EXPECT_GE(most, goodput(run, best / 1.05).effective);
  }
}

TEST(Goodput, all_time_is_accounted_for) {
  for (const RunConditions& run : {plain_run(), involved_run()}) {
    const Goodput result = goodput(run, 900);
    EXPECT_NEAR(result.effective + lost_in_all(result.lost), 1, 1e-12);
    for (const LostTime& part : result.lost) EXPECT_GE(part.share, 0) << part.cause;
    const DrawnRun drawn = draw_run(run, 900, 30 * day, 1);
    EXPECT_NEAR(drawn.effective + lost_in_all(drawn.lost), 1, 1e-9);
    ASSERT_EQ(drawn.lost.size(), result.lost.size());
    for (size_t i = 0; i < drawn.lost.size(); ++i) EXPECT_EQ(drawn.lost[i].cause, result.lost[i].cause);
  }
}

TEST(Goodput, rarer_failures_and_shorter_stops_leave_more_of_it) {
  double before = 0;
  for (const double mtbf_hours : {0.5, 1.0, 3.0, 24.0, 1000.0}) {
    RunConditions run = involved_run();
    run.mtbf_seconds = mtbf_hours * hour;
    const double effective = goodput(run, best_interval_seconds(run)).effective;
    EXPECT_GT(effective, before);
    before = effective;
  }
  for (double RunConditions::*const cost : {&RunConditions::blocking_seconds, &RunConditions::lag_seconds,
                                            &RunConditions::repeat_probability, &RunConditions::planned_stop_seconds}) {
    RunConditions worse = involved_run();
    worse.*cost *= 1.5;
    EXPECT_LT(goodput(worse, 900).effective, goodput(involved_run(), 900).effective);
  }
}

TEST(Goodput, without_failures_only_checkpoints_cost_time) {
  RunConditions run = plain_run();
  run.mtbf_seconds = 1e15;
  EXPECT_NEAR(goodput(run, 600).effective, 600.0 / 630, 1e-6);
}

// The closed form is the mean of simulated runs, within the error of that mean.
void expect_mean_of_simulations(const RunConditions& run, double interval) {
  constexpr int runs = 200;
  const double training = 30 * day;
  std::vector<double> wall, failures, again;
  for (int seed = 0; seed < runs; ++seed) {
    const DrawnRun drawn = draw_run(run, interval, training, static_cast<uint64_t>(seed));
    wall.push_back(drawn.wall_seconds / (static_cast<double>(drawn.checkpoints) * interval));
    failures.push_back(static_cast<double>(drawn.failures) / drawn.wall_seconds);
    again.push_back(drawn.lost[1].share);
  }
  const Goodput expected = goodput(run, interval);
  const auto error = [](const std::vector<double>& values) {
    return standard_deviation(values) / std::sqrt(static_cast<double>(values.size()));
  };
  EXPECT_NEAR(mean(wall), 1 / expected.effective, 4 * error(wall));
  EXPECT_NEAR(mean(again), expected.lost[1].share, 5 * error(again));
  EXPECT_NEAR(mean(failures), expected.failures_per_second, 5 * error(failures));
}

TEST(RunSimulation, mean_agrees_with_the_closed_form) {
  expect_mean_of_simulations(plain_run(), 13.6 * minute);
}

TEST(RunSimulation, mean_agrees_where_checkpoints_lag_and_recoveries_differ) {
  expect_mean_of_simulations(involved_run(), 900);
}

TEST(RunSimulation, mean_agrees_where_some_failures_fall_back_to_storage) {
  RunConditions run = plain_run();
  run.recoveries = {{.name = "from memory", .share = 0.95, .seconds = 300},
                    {.name = "from storage", .share = 0.05, .seconds = 600, .from_storage = true}};
  run.checkpoints_per_storage_copy = 7;
  run.storage_lag_seconds = 2 * (600 + run.blocking_seconds);
  expect_mean_of_simulations(run, 600);
}

TEST(RunSimulation, the_same_seed_gives_the_same_run) {
  const DrawnRun first = draw_run(involved_run(), 900, 10 * day, 5);
  const DrawnRun second = draw_run(involved_run(), 900, 10 * day, 5);
  EXPECT_EQ(first.wall_seconds, second.wall_seconds);
  EXPECT_NE(first.wall_seconds, draw_run(involved_run(), 900, 10 * day, 6).wall_seconds);
}

}  // namespace foretoken::goodput_test
