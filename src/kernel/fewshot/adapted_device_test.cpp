#include "kernel/fewshot/adapted_device.h"

#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>

#include "base/error.h"
#include "base/file.h"
#include "base/portable_math.h"
#include "base/statistics.h"
#include "kernel/fewshot/fit_prior.h"
#include "kernel/fewshot/measure_next.h"
#include "kernel/fewshot/validate_fewshot.h"

namespace foretoken::adapted_device_test {

const ArchitectureSpace& space() {
  return architecture_space("nasbench201");
}

// Devices that are mixtures of FLOPs, traffic and calls: what a device of `exponents` does with an architecture.
constexpr std::array<const char*, 3> cost_names = {"log_live_flops", "log_total_traffic", "log_total_calls"};

double synthetic_milliseconds(std::span<const double> features, const std::array<double, 3>& exponents) {
  const std::vector<std::string> names = space().feature_names();
  double log_milliseconds = 2;
  for (size_t c = 0; c < cost_names.size(); ++c) {
    const auto found = std::find(names.begin(), names.end(), cost_names[c]);
    const double typical = c == 0 ? 17 : c == 1 ? 14 : 2;
    log_milliseconds += exponents[c] * (features[static_cast<size_t>(found - names.begin())] - typical);
  }
  return portable_exp(log_milliseconds);
}

constexpr std::array<std::array<double, 3>, 5> known_exponents = {
    {{0.9, 0.1, 0}, {0.1, 0.1, 0.7}, {0.2, 0.8, 0.1}, {0.5, 0.1, 0.3}, {0.3, 0.3, 0.3}}};

LatencyTable synthetic_table(double noise) {
  constexpr size_t architectures = 700;
  LatencyTable table;
  RandomStream stream(7, "synthetic");
  for (size_t a = 0; a < architectures; ++a) {
    table.architectures.cells.push_back(space().draw(stream));
    table.architectures.features.push_back(drawn_features(space(), table.architectures.cells.back()));
  }
  for (size_t d = 0; d < known_exponents.size(); ++d) {
    DeviceLatencies latencies{.device = std::string("device_") + static_cast<char>('a' + d)};
    for (size_t a = 0; a < architectures; ++a) {
      latencies.rows.push_back(a);
      latencies.ids.push_back(a);
      latencies.milliseconds.push_back(synthetic_milliseconds(table.architectures.features[a], known_exponents[d]) *
                                       stream.lognormal(0, noise));
    }
    table.devices.push_back(std::move(latencies));
  }
  return table;
}

// Fitted once: it takes most of the time of these tests.
const LatencyPrior& synthetic_prior() {
  static const LatencyPrior prior =
      fit_latency_prior(space(), synthetic_table(0.01), {.source = "synthetic", .date = "today"});
  return prior;
}

struct SyntheticDevice {
  std::array<double, 3> exponents;
  double noise = 0;

  Timing timing(RandomStream& stream) const {
    Timing timing{.features = drawn_features(space(), space().draw(stream))};
    timing.milliseconds = synthetic_milliseconds(timing.features, exponents) * stream.lognormal(0, noise);
    return timing;
  }
};

double mape_of(const AdaptedDevice& device, const SyntheticDevice& truth) {
  RandomStream stream(3, "queries");
  double sum = 0;
  constexpr int queries = 200;
  for (int q = 0; q < queries; ++q) {
    const Timing exact = SyntheticDevice{.exponents = truth.exponents}.timing(stream);
    sum += std::abs(device.milliseconds(exact.features).value / exact.milliseconds - 1);
  }
  return 100 * sum / queries;
}

std::vector<Timing> draw_timings(const SyntheticDevice& device, size_t count, uint64_t seed) {
  RandomStream stream(seed, "timings");
  std::vector<Timing> timings;
  while (timings.size() < count) timings.push_back(device.timing(stream));
  return timings;
}

TEST(AdaptedDevice, a_device_between_known_ones_is_recovered_from_ten_timings) {
  const LatencyPrior& prior = synthetic_prior();
  const SyntheticDevice truth{.exponents = {0.4, 0.2, 0.3}, .noise = 0.005};
  EXPECT_LT(mape_of(AdaptedDevice(prior, draw_timings(truth, 10, 1)), truth), 2);
}

TEST(AdaptedDevice, a_faster_copy_of_a_known_device_is_recognised) {
  const LatencyPrior& prior = synthetic_prior();
  std::vector<Timing> timings = draw_timings({.exponents = known_exponents[1], .noise = 0.005}, 10, 1);
  for (Timing& timing : timings) timing.milliseconds /= 50;
  const AdaptedDevice device(prior, timings);
  ASSERT_FALSE(device.resembles().empty());
  EXPECT_EQ(device.resembles().front().name, "device_b");
}

TEST(AdaptedDevice, a_device_that_only_counts_flops_is_recovered_though_no_known_one_does) {
  const LatencyPrior& prior = synthetic_prior();
  const SyntheticDevice truth{.exponents = {1.3, 0, 0}, .noise = 0.005};
  EXPECT_LT(mape_of(AdaptedDevice(prior, draw_timings(truth, 10, 1)), truth), 5);
}

TEST(AdaptedDevice, more_timings_are_no_worse_on_average) {
  const LatencyPrior& prior = synthetic_prior();
  const SyntheticDevice truth{.exponents = {0.7, 0.5, -0.2}, .noise = 0.05};
  double last = INFINITY;
  for (const size_t count : {3, 10, 40}) {
    double sum = 0;
    for (uint64_t seed = 0; seed < 8; ++seed)
      sum += mape_of(AdaptedDevice(prior, draw_timings(truth, count, seed)), truth);
    EXPECT_LT(sum, last) << count << " timings";
    last = sum;
  }
}

TEST(AdaptedDevice, timings_in_other_units_scale_predictions_and_intervals) {
  const LatencyPrior& prior = synthetic_prior();
  std::vector<Timing> timings = draw_timings({.exponents = {0.4, 0.2, 0.3}, .noise = 0.02}, 10, 1);
  const AdaptedDevice slow(prior, timings);
  const Estimate before = slow.milliseconds(timings[0].features);
  for (Timing& timing : timings) timing.milliseconds /= 1000;
  const Estimate after = AdaptedDevice(prior, timings).milliseconds(timings[0].features);
  EXPECT_NEAR(after.value * 1000, before.value, 1e-6 * before.value);
  EXPECT_NEAR(after.high / after.low, before.high / before.low, 1e-6);
  EXPECT_LT(before.low, before.value);
  EXPECT_LT(before.value, before.high);
}

TEST(AdaptedDevice, the_order_of_timings_does_not_matter) {
  const LatencyPrior& prior = synthetic_prior();
  std::vector<Timing> timings = draw_timings({.exponents = {0.4, 0.2, 0.3}, .noise = 0.02}, 10, 1);
  const std::vector<double> query = timings[3].features;
  const double before = AdaptedDevice(prior, timings).milliseconds(query).value;
  std::reverse(timings.begin(), timings.end());
  EXPECT_NEAR(AdaptedDevice(prior, timings).milliseconds(query).value, before, 1e-6 * before);
}

TEST(FailedTimings, a_run_that_broke_off_is_found_and_fast_networks_are_not) {
  const LatencyPrior& prior = synthetic_prior();
  // FLOPs alone: the lightest networks truly run in under a fifth of the median time.
  std::vector<Timing> timings = draw_timings({.exponents = {1.6, 0, 0}, .noise = 0.01}, 30, 2);
  std::vector<double> milliseconds;
  for (const Timing& timing : timings) milliseconds.push_back(timing.milliseconds);
  EXPECT_TRUE(failed_timings(prior, timings).empty());
  timings[4].milliseconds = quantile(milliseconds, 0.5) / 100;
  EXPECT_EQ(failed_timings(prior, timings), std::vector<size_t>{4});
}

TEST(MeasureNext, advised_timings_predict_better_than_random_ones_on_average) {
  const LatencyPrior& prior = synthetic_prior();
  double advised = 0, random = 0;
  for (uint64_t seed = 0; seed < 6; ++seed) {
    const SyntheticDevice truth{.exponents = {0.9 - 0.1 * static_cast<double>(seed), 0.3, 0.2}, .noise = 0.03};
    const std::vector<Timing> candidates = draw_timings(truth, 100, seed);
    std::vector<std::vector<double>> features;
    for (const Timing& candidate : candidates) features.push_back(candidate.features);
    std::vector<Timing> chosen;
    for (const size_t c : measure_first(prior, features, 5)) chosen.push_back(candidates[c]);
    advised += mape_of(AdaptedDevice(prior, chosen), truth);
    random += mape_of(AdaptedDevice(prior, {candidates.data(), 5}), truth);
  }
  EXPECT_LT(advised, random);
}

TEST(MeasureNext, what_was_timed_is_not_advised_first_again) {
  const LatencyPrior& prior = synthetic_prior();
  RandomStream stream(5, "candidates");
  std::vector<std::vector<double>> features;
  for (int c = 0; c < 60; ++c) features.push_back(drawn_features(space(), space().draw(stream)));
  const std::vector<size_t> first = measure_first(prior, features, 3);
  std::vector<Timing> timings;
  for (const size_t c : first)
    timings.push_back({.features = features[c], .milliseconds = synthetic_milliseconds(features[c], {0.5, 0.2, 0.3})});
  const std::vector<size_t> next = measure_next(AdaptedDevice(prior, timings), features, 3);
  ASSERT_EQ(next.size(), 3U);
  for (const size_t c : next) EXPECT_EQ(std::count(first.begin(), first.end(), c), 0);
}

TEST(LatencyPrior, a_file_gives_back_the_same_predictions) {
  const LatencyPrior& prior = synthetic_prior();
  const std::string text = latency_prior_json(prior);
  const LatencyPrior again = parse_latency_prior(text, "prior.json");
  EXPECT_EQ(latency_prior_json(again), text);
  const std::vector<Timing> timings = draw_timings({.exponents = {0.4, 0.2, 0.3}, .noise = 0.02}, 10, 1);
  const double value = AdaptedDevice(prior, timings).milliseconds(timings[0].features).value;
  EXPECT_NEAR(AdaptedDevice(again, timings).milliseconds(timings[0].features).value, value, 1e-3 * value);
}

TEST(LatencyPrior, a_newer_or_damaged_file_is_refused_with_the_reason) {
  const auto complaint = [](const std::string& text) -> std::string {
    try {
      parse_latency_prior(text, "prior.json");
    } catch (const InputError& error) {
      return error.what();
    }
    return "";
  };
  const auto replaced = [](std::string text, const std::string& from, const std::string& to) {
    const size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    return text.replace(at, from.size(), to);
  };
  const std::string text = latency_prior_json(synthetic_prior());
  EXPECT_NE(complaint(replaced(text, "\"version\":1", "\"version\":2")).find("newer"), std::string::npos);
  EXPECT_NE(complaint(replaced(text, "\"weights\":[", "\"weights\":[1,")).find("numbers"), std::string::npos);
  const size_t weight = text.find("\"weights\":[") + 11;
  std::string edited = text;
  edited.replace(weight, text.find(',', weight) - weight, "3");
  EXPECT_NE(complaint(edited).find("check"), std::string::npos);
  EXPECT_NE(complaint(replaced(text, "\"space\":\"nasbench201\"", "\"space\":\"fbnet\"")), "");
}

TEST(LatencyPrior, the_shipped_ones_read_and_are_written_as_they_stand) {
  for (const ArchitectureSpace& one : architecture_spaces()) {
    const std::filesystem::path file =
        std::filesystem::path(FORETOKEN_SOURCE_DIR "/data/edge/priors") / (std::string(one.name) + ".json");
    EXPECT_EQ(latency_prior_json(read_latency_prior(file)), read_file(file, size_t{1} << 20)) << one.name;
  }
}

TEST(FitPrior, odds_are_shares) {
  const LatencyPrior& prior = synthetic_prior();
  double noise = 0, centre = 0;
  for (const double share : prior.odds.noise) noise += share;
  for (const auto& by_spread : prior.odds.centre) {
    for (const double share : by_spread) centre += share;
  }
  EXPECT_NEAR(noise, 1, 1e-9);
  EXPECT_NEAR(centre, 1, 1e-9);
}

}  // namespace foretoken::adapted_device_test
