#include "serving/energy/energy_meter.h"

#include <numeric>

#include <gtest/gtest.h>

#include "serving/test_support.h"

namespace foretoken::energy_meter_test {

// Straight in everything, so that a run of equal decodes and its steps one by one draw the same.
Estimate linear_watts(const SustainedGrid::Step& step) {
  const double watts = 50 + 0.2 * step.prompt_tokens + 3 * step.decodes + 0.01 * step.mean_context;
  return {.value = watts, .low = 0.9 * watts, .high = 1.2 * watts, .kind = Confidence::interpolated};
}

struct MeteredRun {
  EnergyMeter meter;
  RecordedRun record;
};

class Both : public RunObserver {
 public:
  explicit Both(MeteredRun& run) : run_(&run) {}
  void step_ran(const StepRecord& step) override {
    run_->meter.step_ran(step);
    run_->record.step_ran(step);
  }

 private:
  MeteredRun* run_;
};

MeteredRun metered(uint64_t seed, bool repeat_decodes, const StepWatts& watts = linear_watts) {
  // Times that do not grow with the context, as a run of decodes is timed at its mean.
  LinearTimes times({.step = 0.01, .token = 1e-5, .context_token = 0});
  const ReplicaConfig replica{.options = {.max_num_batched_tokens = 512, .max_num_seqs = 16, .num_gpu_blocks = 3000},
                              .times = &times};
  SimulationConfig config{.replicas = {replica, replica}};
  config.repeat_decodes = repeat_decodes;
  ListedRequests requests(random_requests(seed, 60, 20, 600, 150));
  MeteredRun run{.meter = EnergyMeter({watts, watts}), .record = {}};
  Both observer(run);
  simulate(config, requests, observer);
  return run;
}

double total(const JoulesByStep& joules) {
  return joules[0].value + joules[1].value + joules[2].value;
}

TEST(EnergyMeter, energy_is_the_integral_of_power) {
  for (uint64_t seed = 0; seed < 10; ++seed) {
    const double watts = 123;
    const MeteredRun run = metered(seed, true, [&](const SustainedGrid::Step&) { return exactly(watts); });
    double seconds = 0;
    for (const StepRecord& step : run.record.steps) seconds += to_seconds(step.end - step.begin).value();
    EXPECT_NEAR(total(run.meter.joules()), watts * seconds, 1e-9 * watts * seconds);
  }
}

TEST(EnergyMeter, replicas_and_kinds_of_steps_add_up_to_the_same) {
  for (uint64_t seed = 0; seed < 10; ++seed) {
    const EnergyMeter meter = metered(seed, true).meter;
    const auto& replicas = meter.joules_of_replica();
    const double all = total(meter.joules());
    EXPECT_NEAR(std::accumulate(replicas.begin(), replicas.end(), 0.0), all, 1e-9 * all);
    for (const Estimate& kind : meter.joules()) {
      EXPECT_NEAR(kind.low, 0.9 * kind.value, 1e-9 * all);
      EXPECT_NEAR(kind.high, 1.2 * kind.value, 1e-9 * all);
    }
  }
}

TEST(EnergyMeter, decodes_advanced_at_once_draw_what_they_draw_one_by_one) {
  for (uint64_t seed = 0; seed < 10; ++seed) {
    const double at_once = total(metered(seed, true).meter.joules());
    const double one_by_one = total(metered(seed, false).meter.joules());
    EXPECT_NEAR(at_once, one_by_one, 1e-6 * one_by_one);
  }
}

TEST(EnergyMeter, the_peak_is_of_a_whole_second_of_all_replicas_together) {
  const StepWatts hundred = [](const SustainedGrid::Step&) { return exactly(100); };
  EnergyMeter meter({hundred, hundred});
  const auto step = [&](int32_t replica, double begin, double end) {
    meter.step_ran({.replica = replica,
                    .begin = to_picoseconds(Seconds(begin)),
                    .end = to_picoseconds(Seconds(end)),
                    .decode_tokens = 1});
  };
  EXPECT_EQ(meter.peak_watts(), 0);
  step(0, 100.5, 101.5);
  EXPECT_NEAR(meter.peak_watts(), 50, 1e-9);
  step(1, 99.0, 100.75);  // reported later, begins earlier
  EXPECT_NEAR(meter.peak_watts(), 50 + 75, 1e-9);
}

}  // namespace foretoken::energy_meter_test
