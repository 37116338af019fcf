#include "training/scale/training_run.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "base/statistics.h"
#include "training/scale/failures.h"
#include "training/scale/test_run_simulation.h"

namespace foretoken::training_run_test {

struct LargeRun {
  CheckpointPlan checkpoints{.bytes = 5.67e12, .storage_bytes_per_second = 2e12, .interval_seconds = {}};
  JobReliability reliability = job_reliability({}, {}, checkpoints, 16384);
  Goodput efficiency = job_goodput(reliability, checkpoints);
  TrainingBudget budget{
      .tokens = 1e12, .tokens_per_step = 16e6, .devices = 16384, .usd_per_device_hour = 2.5, .watts_per_device = 1000};
  Estimate step{.value = 5, .low = 4.75, .high = 5.25};
  StepVariation variation = step_variation({.replicas = 16384, .other_seconds = 5, .median_seconds = 5});

  TrainingRun run() const { return training_run(budget, step, variation, reliability.conditions, efficiency); }
};

TEST(TrainingRun, without_variation_and_failures_time_is_steps_times_step) {
  LargeRun large;
  large.step = exactly(5);
  large.variation = step_variation({.other_seconds = 5}, VariationModel::none());
  large.reliability.conditions.mtbf_seconds = 1e18;
  const Goodput all{.interval_seconds = 600, .effective = 1};
  const TrainingRun run = training_run(large.budget, large.step, large.variation, large.reliability.conditions, all);
  EXPECT_EQ(run.steps, 62500);
  EXPECT_DOUBLE_EQ(run.days.value, 62500 * 5.0 / 86400);
  EXPECT_DOUBLE_EQ(run.days.low, run.days.high);
  EXPECT_DOUBLE_EQ(run.tokens_per_second, 16e6 / 5);
}

TEST(TrainingRun, money_is_linear_in_the_price_and_energy_in_the_power) {
  LargeRun large;
  const TrainingRun before = large.run();
  *large.budget.usd_per_device_hour *= 3;
  *large.budget.watts_per_device *= 2;
  const TrainingRun after = large.run();
  EXPECT_DOUBLE_EQ(after.usd->value, 3 * before.usd->value);
  EXPECT_DOUBLE_EQ(after.usd->high, 3 * before.usd->high);
  EXPECT_DOUBLE_EQ(after.megawatt_hours->value, 2 * before.megawatt_hours->value);
  EXPECT_DOUBLE_EQ(after.days.value, before.days.value);
}

TEST(TrainingRun, without_price_or_power_none_is_made_up) {
  LargeRun large;
  large.budget.usd_per_device_hour.reset();
  large.budget.watts_per_device.reset();
  EXPECT_FALSE(large.run().usd);
  EXPECT_FALSE(large.run().megawatt_hours);
}

TEST(TrainingRun, spares_cost_and_do_not_train) {
  LargeRun large;
  const TrainingRun before = large.run();
  large.budget.spare_devices = 16384;
  EXPECT_DOUBLE_EQ(large.run().days.value, before.days.value);
  EXPECT_DOUBLE_EQ(large.run().usd->value, 2 * before.usd->value);
}

TEST(TrainingRun, more_tokens_and_warmer_afternoons_take_longer) {
  LargeRun large;
  const TrainingRun before = large.run();
  large.budget.day_night_swing = 0.02;
  EXPECT_NEAR(large.run().days.value, 1.01 * before.days.value, 1e-9);
  large.budget.tokens *= 10;
  EXPECT_NEAR(large.run().days.value, 10.1 * before.days.value, 1e-6);
}

// Long runs differ little by luck: the prediction of the step is what their length is unsure of.
TEST(TrainingRun, luck_averages_out_over_a_long_run) {
  LargeRun large;
  large.step = exactly(5);
  const Estimate few_days = large.run().days;
  large.budget.tokens *= 100;
  const Estimate many_days = large.run().days;
  EXPECT_LT(many_days.high / many_days.value, few_days.high / few_days.value);
}

TEST(TrainingRun, simulated_runs_end_within_the_interval_as_often_as_it_says) {
  LargeRun large;
  large.step = exactly(5);
  large.variation = step_variation({.other_seconds = 5}, VariationModel::none());
  const TrainingRun run = large.run();
  std::vector<double> days;
  for (uint64_t seed = 0; seed < 400; ++seed) {
    days.push_back(
        draw_run(large.reliability.conditions, large.efficiency.interval_seconds, run.steps * 5, seed).wall_seconds /
        86400);
  }
  EXPECT_NEAR(mean(days), run.days.value, 0.002 * run.days.value);
  int64_t inside = 0;
  for (const double value : days) inside += value >= run.days.low && value <= run.days.high ? 1 : 0;
  EXPECT_GE(inside, 340);  // of 400: 90% at four standard errors
  EXPECT_LE(inside, 384);
}

}  // namespace foretoken::training_run_test
