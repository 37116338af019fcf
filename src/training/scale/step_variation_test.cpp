#include "training/scale/step_variation.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "base/random.h"
#include "base/statistics.h"

namespace foretoken::step_variation_test {

// Llama 3.1 405B on 2,048 GPUs, roughly: tensor 8, pipeline 8 x 8 virtual, 32 replicas.
StepPieces large_step() {
  return {.compute_seconds = 0.19,
          .kernels = 16 * 60,
          .meetings = 16 * 4,
          .micro_batches = 36,
          .stages = 8,
          .virtual_stages = 8,
          .tensor_ranks = 8,
          .replicas = 32,
          .exposed_communication_seconds = 0.3,
          .collectives = 40,
          .other_seconds = 0.1,
          .median_seconds = {}};
}

TEST(StepVariation, without_variation_every_step_takes_the_nominal_time) {
  const StepPieces pieces = large_step();
  const StepVariation variation = step_variation(pieces, VariationModel::none());
  EXPECT_DOUBLE_EQ(variation.p50, (36 + 7.0 / 8) * 0.19 + 0.3 + 0.1);
  EXPECT_EQ(variation.p05, variation.p99);
  EXPECT_DOUBLE_EQ(variation.mean, variation.p50);
  EXPECT_EQ(variation.deviation, 0);
  for (const VariationSource& source : variation.sources) {
    EXPECT_EQ(source.median_seconds, 0) << source.name;
    EXPECT_EQ(source.p95_seconds, 0) << source.name;
  }
}

TEST(StepVariation, quantiles_are_in_order_and_meet_their_probabilities) {
  const StepTimeDistribution times(large_step(), {});
  double before = 0;
  for (const double share : {0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99, 0.999}) {
    const double seconds = times.quantile(share);
    EXPECT_GT(seconds, before);
    EXPECT_NEAR(times.probability_beyond(seconds), 1 - share, 1e-9);
    before = seconds;
  }
}

TEST(StepVariation, a_given_median_is_kept_and_scales_all_times) {
  StepPieces pieces = large_step();
  VariationModel model;
  model.stalls_per_device_hour = 0;
  const StepVariation free = step_variation(pieces, model);
  pieces.median_seconds = 2 * free.p50;
  const StepVariation scaled = step_variation(pieces, model);
  EXPECT_NEAR(scaled.p50, 2 * free.p50, 1e-9 * scaled.p50);
  EXPECT_NEAR(scaled.p95, 2 * free.p95, 1e-6 * scaled.p95);
  EXPECT_NEAR(scaled.mean, 2 * free.mean, 1e-6 * scaled.mean);
  EXPECT_NEAR(scaled.deviation, 2 * free.deviation, 1e-6 * scaled.deviation);
}

// Logs are predicted from their median alone, plans from all their pieces: the same answer, nearly.
TEST(StepVariation, pieces_say_nearly_what_the_median_says) {
  StepPieces pieces = large_step();
  pieces.median_seconds = 8;
  const StepVariation whole = step_variation({.replicas = pieces.devices(), .other_seconds = 8, .median_seconds = 8});
  const StepVariation from_pieces = step_variation(pieces);
  EXPECT_NEAR(from_pieces.p95 / from_pieces.p50, whole.p95 / whole.p50, 0.002);
  EXPECT_NEAR(from_pieces.mean, whole.mean, 0.001 * whole.mean);
  EXPECT_EQ(from_pieces.stall_probability, whole.stall_probability);
}

TEST(StepVariation, more_participants_wait_longer_for_the_slowest) {
  StepPieces pieces = large_step();
  double before = 0;
  for (const int64_t replicas : {1, 8, 64, 512, 4096}) {
    pieces.replicas = replicas;
    const double p50 = step_variation(pieces).p50;
    EXPECT_GT(p50, before);
    before = p50;
  }
}

TEST(StepVariation, each_source_of_variation_makes_the_p95_longer) {
  for (double VariationModel::*const source :
       {&VariationModel::device_spread, &VariationModel::kernel_jitter, &VariationModel::link_jitter,
        &VariationModel::step_jitter_above, &VariationModel::stalls_per_device_hour}) {
    VariationModel more;
    more.*source *= 3;
    EXPECT_GT(step_variation(large_step(), more).p95, step_variation(large_step()).p95);
  }
}

TEST(StepVariation, steps_unlike_those_of_the_logs_are_extrapolated) {
  const auto kind_of = [](int64_t devices, double seconds) {
    return step_variation({.replicas = devices, .other_seconds = seconds}).kind;
  };
  EXPECT_EQ(kind_of(2048, 10), Confidence::interpolated);
  EXPECT_EQ(kind_of(16384, 10), Confidence::extrapolated);
  EXPECT_EQ(kind_of(8, 1), Confidence::extrapolated);
}

// Noise between devices averages out within a step and moves its median; what steps of one run differ by is common.
TEST(StepVariation, noise_between_devices_moves_the_median_and_hardly_widens_the_steps) {
  const StepVariation variation = step_variation(large_step());
  double common = 0;
  for (const VariationSource& source : variation.sources) {
    if (source.name == "slow devices") {
      EXPECT_GT(source.median_seconds, 0.03 * variation.p50);
    }
    if (source.name == "noise of the step" || source.name == "stalls") common += source.p95_seconds;
  }
  EXPECT_GT(common, 0.9 * (variation.p95 - variation.p50));
}

// The same law drawn piece by piece: units, maxima over tensor ranks, sums over the path, maxima over paths. Without
// slow devices: which ones a job gets is no part of the distribution of its steps.
double drawn_step_seconds(const StepPieces& pieces, const VariationModel& model, RandomStream& stream) {
  const double unit = pieces.compute_seconds / static_cast<double>(pieces.meetings);
  const double kernels = static_cast<double>(pieces.kernels) / static_cast<double>(pieces.meetings);
  double slowest_path = 0;
  for (int64_t path = 0; path < pieces.stages * pieces.replicas; ++path) {
    double seconds = 0;
    for (int64_t i = 0; i < (pieces.micro_batches + pieces.stages - 1) * pieces.meetings; ++i) {
      double slowest_rank = 0;
      for (int64_t rank = 0; rank < pieces.tensor_ranks; ++rank) {
        slowest_rank = std::max(slowest_rank, stream.normal(unit, unit * model.kernel_jitter / std::sqrt(kernels)));
      }
      seconds += slowest_rank;
    }
    slowest_path = std::max(slowest_path, seconds);
  }
  const double centre = slowest_path + pieces.other_seconds;
  const bool above = stream.uniform() < 0.5;
  const double noise =
      above ? stream.exponential(model.step_jitter_above) : -stream.exponential(model.step_jitter_below);
  return centre * (1 + noise);
}

TEST(StepVariation, closed_form_agrees_with_drawing_every_piece) {
  const StepPieces pieces{.compute_seconds = 0.02,
                          .kernels = 80,
                          .meetings = 8,
                          .micro_batches = 6,
                          .stages = 4,
                          .tensor_ranks = 4,
                          .replicas = 3,
                          .other_seconds = 0.01,
                          .median_seconds = {}};
  const VariationModel model{.device_spread = 0, .kernel_jitter = 0.3, .stalls_per_device_hour = 0};
  RandomStream stream(7, "step variation");
  constexpr size_t draws = 800;
  std::vector<double> drawn(draws);
  for (double& seconds : drawn) seconds = drawn_step_seconds(pieces, model, stream);
  const StepVariation variation = step_variation(pieces, model);
  const double error = standard_deviation(drawn) / std::sqrt(static_cast<double>(draws));
  EXPECT_NEAR(mean(drawn), variation.mean, 4 * error);
  EXPECT_NEAR(quantile(drawn, 0.5), variation.p50, 6 * error);
  EXPECT_NEAR(quantile(drawn, 0.95), variation.p95, 12 * error);
  EXPECT_NEAR(standard_deviation(drawn), variation.deviation, 0.1 * variation.deviation);
}

TEST(StepVariation, stalls_come_with_device_hours_and_lengthen_the_mean_by_their_size) {
  VariationModel model = VariationModel::none();
  model.stalls_per_device_hour = 0.002;
  model.stall_sigma = 0.5;
  const StepPieces pieces{.replicas = 3600, .other_seconds = 10, .median_seconds = {}};
  const StepTimeDistribution times(pieces, model);
  EXPECT_NEAR(times.stall_probability(), 1 - std::exp(-0.02), 1e-12);
  const double size = 10 * model.stall_median * std::exp(0.5 * model.stall_sigma * model.stall_sigma);
  EXPECT_NEAR(times.mean(), 10 + 0.02 * size, 1e-9);
  EXPECT_EQ(times.quantile(0.5), times.quantile(0.9));
  EXPECT_GT(times.quantile(0.99), 10 * (1 + 0.5 * model.stall_median));
}

}  // namespace foretoken::step_variation_test
