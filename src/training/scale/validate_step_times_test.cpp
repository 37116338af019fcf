#include "training/scale/validate_step_times.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace foretoken::validate_step_times_test {

MeasuredStepTimes quiet_log(double noise) {
  return {.id = "log",
          .system = "system",
          .gpu = "gpu",
          .devices = 1000,
          .steps = 1000,
          .mean = 2,
          .p05 = 2 * (1 - noise),
          .p25 = 2 * (1 - noise / 3),
          .p50 = 2,
          .p75 = 2 * (1 + noise / 3),
          .p95 = 2 * (1 + noise),
          .p99 = 2 * (1 + 1.7 * noise),
          .longest = 2 * (1 + 3 * noise)};
}

TEST(ValidateStepTimes, noisier_logs_give_noisier_constants) {
  const std::vector<MeasuredStepTimes> quiet{quiet_log(0.01), quiet_log(0.015)};
  const std::vector<MeasuredStepTimes> loud{quiet_log(0.04), quiet_log(0.05)};
  EXPECT_LT(fit_step_variation(quiet).step_jitter_above, fit_step_variation(loud).step_jitter_above);
  EXPECT_LT(fit_step_variation(quiet).step_jitter_below, fit_step_variation(loud).step_jitter_below);
  EXPECT_LE(fit_step_variation(quiet).stalls_per_device_hour, fit_step_variation(loud).stalls_per_device_hour);
  EXPECT_EQ(runs_within(validate_step_times(loud, fit_step_variation(loud))), 2);
}

TEST(ValidateStepTimes, quantiles_out_of_order_are_refused) {
  const auto read = [](const std::string& p95) {
    return read_step_times(
        CsvReader::from_text("run_id,run,gpu,n_gpus,steps,mean,p05,p25,p50,p75,p95,p99,max\n"
                             "a,v1 x/sys_n1/m,G,8,10,1,1,1,1,1," +
                                 p95 + ",2,3\n",
                             "logs"));
  };
  EXPECT_EQ(read("1.5").front().system, "sys");
  EXPECT_THROW(read("0.5"), InputError);
}

TEST(ValidateStepTimes, errors_are_by_gpu_and_say_how_many_are_close) {
  const std::vector<MeasuredStepTimes> rows{quiet_log(0.02), quiet_log(0.2)};
  const Validation validation = step_time_errors(validate_step_times(rows));
  EXPECT_EQ(validation.overall.n, 2u);
  ASSERT_EQ(validation.groups.size(), 1u);
  EXPECT_EQ(validation.groups.front().name, "gpu");
  EXPECT_EQ(validation.notes.front(), "p95 / p50 of 1 of 2 runs within 0.02");
}

}  // namespace foretoken::validate_step_times_test
