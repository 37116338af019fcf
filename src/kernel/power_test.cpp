#include "kernel/power.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "base/random.h"
#include "kernel/test_support.h"

namespace foretoken::power_test {

PowerCalibration round_numbers() {
  PowerCalibration c{.device = "h200_sxm",
                     .source = "made up",
                     .fitted_on = "2026-11-15",
                     .rows = 20,
                     .limit_watts = 700,
                     .bandwidth = 4.8e12,
                     .peak_16 = 1e15,
                     .peak_8 = 2e15,
                     .idle_watts = 100,
                     .limit_share = 1,
                     .watts_half_width = 0.05,
                     .slowdown_half_width = 0.03};
  const auto facts = power_constant_facts();
  for (size_t k = 0; k < facts.size(); ++k) c.constants[k] = facts[k].start;
  return c;
}

PowerModel model_of(const std::string& device, const PowerCalibration& calibration = round_numbers()) {
  return PowerModel::make(test_support::hardware().device(device), {&calibration, 1}).value();
}

BusyKernel random_kernel(RandomStream& random) {
  const double seconds = random.lognormal(-9, 1.5);
  const auto activity = static_cast<Activity>(random.below(5));
  const double flop_rate = activity == Activity::vector ? 1e13 : 9e14;  // what the units can do
  return {.work = {.flops = Flops(seconds * flop_rate * random.uniform()),
                   .math = random.below(2) == 0 ? DType::bf16 : DType::fp8,
                   .activations_read = Bytes(seconds * 4.4e12 * random.uniform())},
          .burst_seconds = Seconds(seconds),
          .activity = activity,
          .calls = 1 + static_cast<double>(random.below(5))};
}

std::vector<BusyKernel> random_mix(RandomStream& random) {
  std::vector<BusyKernel> mix;
  for (size_t i = 0; i < 1 + random.below(5); ++i) mix.push_back(random_kernel(random));
  return mix;
}

TEST(Power, a_board_never_draws_more_than_its_limit_nor_less_than_idle) {
  const PowerModel model = model_of("h200_sxm");
  RandomStream random(1, "power");
  for (int trial = 0; trial < 300; ++trial) {
    const SustainedPower power = model.sustained(random_mix(random));
    EXPECT_LE(power.watts.value, 700 * (1 + 1e-9));
    EXPECT_GE(power.watts.value, 100);
    EXPECT_LE(power.watts.low, power.watts.value);
    EXPECT_GE(power.watts.high, power.watts.value);
  }
}

TEST(Power, only_a_mix_that_wants_more_than_the_limit_is_slowed_down) {
  const PowerModel model = model_of("h200_sxm");
  RandomStream random(2, "power");
  int limited = 0;
  for (int trial = 0; trial < 300; ++trial) {
    const SustainedPower power = model.sustained(random_mix(random));
    EXPECT_EQ(power.limited, power.wanted_watts > 700);
    EXPECT_GE(power.slowdown.value, 1);
    if (power.limited) {
      ++limited;
      EXPECT_NEAR(power.watts.value, 700, 0.01) << "the clock falls no further than it must";
    } else {
      EXPECT_EQ(power.slowdown.value, 1);
    }
  }
  EXPECT_GT(limited, 30);
  EXPECT_LT(limited, 270);
}

TEST(Power, a_higher_limit_never_lowers_the_clock) {
  RandomStream random(3, "power");
  Device low = test_support::hardware().device("h200_sxm"), high = low;
  low.power_limit->value = Watts(500);
  const PowerCalibration calibration = round_numbers();
  for (int trial = 0; trial < 200; ++trial) {
    const std::vector<BusyKernel> mix = random_mix(random);
    const SustainedPower tight = PowerModel::make(low, {&calibration, 1})->sustained(mix);
    const SustainedPower loose = PowerModel::make(high, {&calibration, 1})->sustained(mix);
    EXPECT_LE(tight.clock_share, loose.clock_share * (1 + 1e-9));
    EXPECT_LE(tight.watts.value, 500 * (1 + 1e-9));
  }
}

TEST(Power, caps_at_or_above_what_a_board_does_anyway_change_nothing) {
  const PowerModel model = model_of("h200_sxm");
  const PowerModel same = model.capped({.limit_watts = 700, .clock_hertz = 1980e6});
  const PowerModel loose = model.capped({.limit_watts = 1000, .clock_hertz = 3e9});
  RandomStream random(8, "power");
  for (int trial = 0; trial < 100; ++trial) {
    const std::vector<BusyKernel> mix = random_mix(random);
    const SustainedPower plain = model.sustained(mix);
    for (const SustainedPower& capped : {same.sustained(mix), loose.sustained(mix)}) {
      EXPECT_EQ(capped.watts.value, plain.watts.value);
      EXPECT_EQ(capped.joules.value, plain.joules.value);
      EXPECT_EQ(capped.slowdown.value, plain.slowdown.value);
    }
  }
}

TEST(Power, lower_caps_draw_less_and_are_never_faster) {
  const PowerModel model = model_of("h200_sxm");
  RandomStream random(9, "power");
  for (int trial = 0; trial < 100; ++trial) {
    const std::vector<BusyKernel> mix = random_mix(random);
    SustainedPower by_limit = model.sustained(mix), by_clock = by_limit;
    for (const double share : {0.9, 0.75, 0.6, 0.4}) {
      const SustainedPower limit = model.capped({.limit_watts = 700 * share, .clock_hertz = {}}).sustained(mix);
      const SustainedPower clock = model.capped({.limit_watts = {}, .clock_hertz = 1980e6 * share}).sustained(mix);
      EXPECT_LE(limit.watts.value, by_limit.watts.value * (1 + 1e-9));
      EXPECT_GE(limit.slowdown.value, by_limit.slowdown.value * (1 - 1e-9));
      EXPECT_LE(clock.watts.value, by_clock.watts.value * (1 + 1e-9));
      EXPECT_GE(clock.slowdown.value, by_clock.slowdown.value * (1 - 1e-9));
      EXPECT_LE(clock.clock_share, share);
      by_limit = limit;
      by_clock = clock;
    }
    EXPECT_LE(by_clock.slowdown.value, 1 / 0.4 + 1e-9) << "no more time is lost than the clock falls";
    EXPECT_EQ(by_clock.watts.kind, Confidence::extrapolated) << "no such clock was measured";
  }
}

TEST(Power, one_kernel_twice_is_the_same_as_two_calls_of_it) {
  const PowerModel model = model_of("h200_sxm");
  RandomStream random(4, "power");
  for (int trial = 0; trial < 100; ++trial) {
    BusyKernel once = random_kernel(random);
    once.calls = 1;
    BusyKernel twice = once;
    twice.calls = 2;
    const std::vector<BusyKernel> pair = {once, once};
    const SustainedPower a = model.sustained(pair), b = model.sustained({&twice, 1});
    EXPECT_NEAR(a.watts.value, b.watts.value, 1e-6 * a.watts.value);
    EXPECT_NEAR(a.slowdown.value, b.slowdown.value, 1e-6);
    EXPECT_NEAR(a.joules.value, b.joules.value, 1e-6 * a.joules.value);
  }
}

TEST(Power, pauses_lower_the_power_towards_idle_and_the_slowdown_towards_none) {
  const PowerModel model = model_of("h200_sxm");
  RandomStream random(5, "power");
  for (int trial = 0; trial < 100; ++trial) {
    const std::vector<BusyKernel> mix = random_mix(random);
    double watts = 701, slowdown = 100;
    for (const double pause : {0.0, 1e-4, 1e-2, 1.0, 1e4}) {
      const SustainedPower power = model.sustained(mix, Seconds(pause));
      EXPECT_LE(power.watts.value, watts * (1 + 1e-9));
      EXPECT_LE(power.slowdown.value, slowdown * (1 + 1e-9));
      watts = power.watts.value;
      slowdown = power.slowdown.value;
    }
    EXPECT_NEAR(watts, 100, 1);
    EXPECT_NEAR(slowdown, 1, 1e-3);
  }
}

TEST(Power, more_work_in_the_same_time_wants_more_power) {
  const PowerModel model = model_of("h200_sxm");
  RandomStream random(6, "power");
  for (int trial = 0; trial < 200; ++trial) {
    BusyKernel less = random_kernel(random);
    less.work.math = DType::bf16;
    less.activity = Activity::multiply;
    BusyKernel more = less;
    // Multiplying costs more than being busy otherwise.
    more.work.flops = more.work.flops + Flops(0.05 * less.burst_seconds.value() * 9e14);
    EXPECT_GE(model.sustained({&more, 1}).wanted_watts * 1.000001, model.sustained({&less, 1}).wanted_watts);
  }
}

TEST(Power, streaming_loses_no_time_to_a_lower_clock) {
  const PowerModel model = model_of("h200_sxm");
  const double seconds = 1e-3, bytes = seconds * 4.8e12 * round_numbers().constants[streaming_share];
  const BusyKernel copy{.work = {.activations_read = Bytes(bytes)}, .burst_seconds = Seconds(seconds)};
  const BusyKernel multiply{.work = {.flops = Flops(seconds * 9e14)}, .burst_seconds = Seconds(seconds)};
  // The board is held at a low clock by the other kernel of the mix.
  const std::vector<BusyKernel> mix = {copy, multiply};
  const SustainedPower alone = model.sustained({&multiply, 1}), both = model.sustained(mix);
  EXPECT_GT(alone.slowdown.value, 1.02);
  EXPECT_LT(both.slowdown.value, alone.slowdown.value);
}

TEST(Power, a_board_without_measurements_takes_anothers_and_says_so) {
  const PowerModel own = model_of("h200_sxm"), ported = model_of("a100_sxm");
  EXPECT_TRUE(own.is_measured());
  EXPECT_FALSE(ported.is_measured());
  const BusyKernel kernel{.work = {.flops = Flops(2e10), .activations_read = Bytes(1e8)},
                          .burst_seconds = Seconds(1e-4)};
  const BurstPower a = own.burst({&kernel, 1}), b = ported.burst({&kernel, 1});
  EXPECT_EQ(a.watts.kind, Confidence::interpolated);
  EXPECT_EQ(b.watts.kind, Confidence::extrapolated);
  EXPECT_GT(b.watts.high / b.watts.low, a.watts.high / a.watts.low);
}

PowerCalibration measured_h200() {
  PowerCalibration calibration = round_numbers();
  calibration.peak_16 = 989.4e12;
  calibration.peak_8 = 1978.9e12;
  return calibration;
}

Device h200_limited_to(double watts) {
  Device board = test_support::hardware().device("h200_sxm");
  board.name = "h200_with_another_limit";
  board.power_limit->value = Watts(watts);
  return board;
}

// What a FLOP takes is up to the chip, not to the limit that somebody has set.
TEST(Power, a_board_with_the_measured_chip_and_a_lower_limit_wants_as_much_and_gets_less) {
  const PowerCalibration calibration = measured_h200();
  const PowerModel model = PowerModel::make(h200_limited_to(500), {&calibration, 1}).value();
  const BusyKernel kernel{.work = {.flops = Flops(7e10), .activations_read = Bytes(1e8)},
                          .burst_seconds = Seconds(1e-4)};
  const SustainedPower own = model_of("h200_sxm", calibration).sustained({&kernel, 1});
  const SustainedPower limited = model.sustained({&kernel, 1});
  EXPECT_NEAR(limited.wanted_watts, own.wanted_watts, 1e-6 * own.wanted_watts);
  EXPECT_LE(limited.watts.value, 500);
  EXPECT_GT(limited.slowdown.value, own.slowdown.value);
}

// A higher limit leaves the chip's own electrical limit where it is: GH200 has the chip of an H200 and 1,000 W.
TEST(Power, a_board_with_the_measured_chip_and_a_higher_limit_takes_no_more_at_once) {
  const PowerCalibration calibration = measured_h200();
  const BusyKernel kernel{.work = {.flops = Flops(2e11), .activations_read = Bytes(1e8)},
                          .burst_seconds = Seconds(1e-4)};
  const BurstPower own = model_of("h200_sxm", calibration).burst({&kernel, 1});
  const BurstPower loose = PowerModel::make(h200_limited_to(1000), {&calibration, 1})->burst({&kernel, 1});
  EXPECT_NEAR(loose.watts.value, own.watts.value, 1e-6 * own.watts.value);
}

TEST(Power, every_gpu_of_the_library_with_a_power_limit_has_a_model) {
  const PowerCalibration calibration = round_numbers();
  const BusyKernel kernel{.work = {.flops = Flops(1e9), .activations_read = Bytes(1e7)},
                          .burst_seconds = Seconds(1e-3)};
  size_t models = 0;
  for (const std::string& name : test_support::hardware().device_names()) {
    const Device device = test_support::hardware().device(name);
    const auto model = PowerModel::make(device, {&calibration, 1});
    EXPECT_EQ(model.has_value(), device.power_limit.has_value() && device.memory_bandwidth.has_value()) << name;
    if (!model) continue;
    const SustainedPower power = model->sustained({&kernel, 1});
    EXPECT_GT(power.watts.value, 0) << name;
    EXPECT_LE(power.watts.value, device.power_limit->value.value() * (1 + 1e-9)) << name;
    ++models;
  }
  EXPECT_GT(models, 20u);
}

TEST(PowerFile, what_is_written_reads_back) {
  const PowerCalibration before = round_numbers();
  const auto after = parse_power_calibrations(power_calibration_json({&before, 1}), "test");
  ASSERT_EQ(after.size(), 1u);
  EXPECT_EQ(after[0].device, before.device);
  EXPECT_EQ(after[0].source, before.source);
  EXPECT_EQ(after[0].rows, before.rows);
  for (size_t k = 0; k < power_constant_count; ++k) {
    EXPECT_NEAR(after[0].constants[k], before.constants[k], 1e-3 * before.constants[k]);
  }
}

TEST(PowerFile, broken_files_are_input_errors) {
  const PowerCalibration calibration = round_numbers();
  const std::string good = power_calibration_json({&calibration, 1});
  const auto with = [&](std::string_view old, std::string_view replacement) {
    std::string text = good;
    text.replace(text.find(old), old.size(), replacement);
    return text;
  };
  for (const std::string& bad :
       {std::string("{"), with("\"version\": 1", "\"version\": 99"),
        with("\"limit_watts\": 700", "\"limit_watts\": -1"), with("\"idle_watts\"", "\"idle_wats\""),
        with("\"limit_share\": 1", "\"limit_share\": \"all\"")}) {
    EXPECT_THROW(parse_power_calibrations(bad, "test"), InputError) << bad.substr(0, 80);
  }
}

}  // namespace foretoken::power_test
