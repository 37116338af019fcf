#include "accelerator/row_stationary/estimate.h"

#include <cmath>

#include <gtest/gtest.h>

#include "accelerator/row_stationary/test_support.h"
#include "base/statistics.h"

namespace foretoken::row_stationary_estimate_test {

const std::filesystem::path estimate_test_data = FORETOKEN_SOURCE_DIR "/data";

RowStationaryChip chip_under_test() {
  return eyeriss_v1(estimate_test_data);
}

struct ChipErrors {
  double processing = 0, total = 0, buffer = 0, dram = 0, power = 0;  // mean absolute percentage errors
};

ChipErrors errors_on(const std::string& network) {
  const RowStationaryChip chip = chip_under_test();
  std::vector<PredictedRow> processing, total, buffer, dram, power;
  for (const PublishedConvLayer& row : eyeriss_layers(network)) {
    const RowStationaryResult result = estimate_row_stationary(chip, row.layer);
    processing.push_back({.measured = row.processing.value(), .predicted = result.processing.value()});
    total.push_back({.measured = row.total.value(), .predicted = result.total.value()});
    buffer.push_back({.measured = row.buffer.value(), .predicted = result.buffer.total().value()});
    dram.push_back({.measured = row.dram.value(), .predicted = result.dram.total().value()});
    power.push_back({.measured = row.power.value(), .predicted = result.power().value()});
  }
  return {.processing = summarize_errors(processing).mape,
          .total = summarize_errors(total).mape,
          .buffer = summarize_errors(buffer).mape,
          .dram = summarize_errors(dram).mape,
          .power = summarize_errors(power).mape};
}

// No constant of time or traffic is fitted, so each layer's error is also its leave-one-out error.
TEST(RowStationaryEstimate, alexnet_on_the_chip) {
  const ChipErrors errors = errors_on("alexnet");
  EXPECT_LE(errors.processing, 3);
  EXPECT_LE(errors.total, 8);
  EXPECT_LE(errors.buffer, 0.3);
  EXPECT_LE(errors.dram, 8);
}

TEST(RowStationaryEstimate, vgg_on_the_chip) {
  const ChipErrors errors = errors_on("vgg16");
  EXPECT_LE(errors.processing, 4);
  EXPECT_LE(errors.total, 5);
  EXPECT_LE(errors.buffer, 3);
  EXPECT_LE(errors.dram, 5);
  EXPECT_LE(errors.power, 8);
}

TEST(RowStationaryEstimate, layers_of_equal_macs_differ_fourfold_when_the_array_is_fed_one_channel_a_pass) {
  const RowStationaryChip chip = chip_under_test();
  const std::vector<PublishedConvLayer> rows = eyeriss_layers("vgg16");
  const PublishedConvLayer& early = rows[1];
  const PublishedConvLayer& late = rows[8];
  ASSERT_EQ(early.layer.name, "conv1-2");
  ASSERT_EQ(late.layer.name, "conv4-2");
  EXPECT_DOUBLE_EQ(early.layer.macs(), late.layer.macs());
  const RowStationaryResult slow = estimate_row_stationary(chip, early.layer);
  const RowStationaryResult fast = estimate_row_stationary(chip, late.layer);
  EXPECT_NEAR(slow.processing / fast.processing, early.processing / late.processing, 0.35);
  EXPECT_EQ(slow.bound, RowStationaryBound::array_feeding);
  EXPECT_EQ(fast.bound, RowStationaryBound::mac);
  // Were the networks for partial sums wide enough, the two would take nearly the same time.
  RowStationaryChip wide = chip;
  wide.psum_words_per_cycle = 64;
  EXPECT_LT(
      estimate_row_stationary(wide, early.layer).processing / estimate_row_stationary(wide, late.layer).processing,
      1.3);
}

ConvLayer layer_of(const char* name, int64_t channels, int64_t filters, int64_t size, int64_t filter, int64_t stride,
                   int64_t groups = 1) {
  return {.name = name,
          .batch = 1,
          .channels = channels,
          .filters = filters,
          .height = size,
          .width = size,
          .filter_rows = filter,
          .filter_columns = filter,
          .stride = stride,
          .padding = filter / 2,
          .groups = groups,
          .ifmap_zero_share = 0.5,
          .ofmap_zero_share = 0.5};
}

std::vector<ConvLayer> other_networks() {
  return {layer_of("resnet50 conv1", 3, 64, 224, 7, 2),         layer_of("resnet50 2a 1x1", 64, 64, 56, 1, 1),
          layer_of("resnet50 2b 3x3", 64, 64, 56, 3, 1),        layer_of("resnet50 2c 1x1", 64, 256, 56, 1, 1),
          layer_of("resnet50 shortcut", 256, 512, 56, 1, 2),    layer_of("resnet50 5b 3x3", 512, 512, 7, 3, 1),
          layer_of("resnet50 5c 1x1", 512, 2048, 7, 1, 1),      layer_of("mobilenet dw 112", 32, 32, 112, 3, 1, 32),
          layer_of("mobilenet dw 14", 512, 512, 14, 3, 1, 512), layer_of("mobilenet pw 14", 512, 512, 14, 1, 1),
          layer_of("classifier", 2048, 1000, 1, 1, 1)};
}

TEST(RowStationaryEstimate, no_layer_beats_the_peak_of_the_array_or_the_link) {
  const RowStationaryChip chip = chip_under_test();
  for (const ConvLayer& layer : other_networks()) {
    const RowStationaryResult result = estimate_row_stationary(chip, layer);
    SCOPED_TRACE(layer.name);
    EXPECT_GE(result.cycles.mac * static_cast<double>(result.active_pes), layer.macs() * (1 - 1e-12));
    EXPECT_GE(result.cycles.feed, 0);
    EXPECT_GT(result.cycles.ramp, 0);
    EXPECT_GT(result.total, result.processing);
    EXPECT_GE(result.total, result.dram.total() / chip.link * (1 - 1e-12));
    EXPECT_TRUE(std::isfinite(result.energy.total().value()));
  }
}

TEST(RowStationaryEstimate, depthwise_layers_use_the_array_worse_than_pointwise_ones) {
  const RowStationaryChip chip = chip_under_test();
  const auto macs_per_cycle = [&](const ConvLayer& layer) {
    return layer.macs() / estimate_row_stationary(chip, layer).cycles.total();
  };
  EXPECT_LT(2 * macs_per_cycle(layer_of("depthwise", 512, 512, 14, 3, 1, 512)),
            macs_per_cycle(layer_of("pointwise", 512, 512, 14, 1, 1)));
}

// Buffering all filters reads inputs once but may leave no room for channels: 250 filters took 3.7 times as long as
// 288.
TEST(RowStationaryEstimate, fewer_filters_never_make_a_pointwise_layer_slower) {
  const RowStationaryChip chip = chip_under_test();
  constexpr double grain = 1.05;  // sets are shared out in powers of two, not in every way there is
  for (const auto& [channels, size] : {std::pair<int64_t, int64_t>{64, 56}, {256, 14}}) {
    double least_of_more = INFINITY;
    for (int64_t filters = 290; filters > 0; filters -= 8) {
      const double total =
          estimate_row_stationary(chip, layer_of("pointwise", channels, filters, size, 1, 1)).total.value();
      EXPECT_LE(total, grain * least_of_more) << channels << " channels, " << filters << " filters";
      least_of_more = std::min(least_of_more, total);
    }
  }
}

TEST(RowStationaryEstimate, faster_networks_clocks_and_links_never_slow_a_layer) {
  const RowStationaryChip chip = chip_under_test();
  for (const ConvLayer& layer : other_networks()) {
    const Seconds base = estimate_row_stationary(chip, layer).total;
    for (double RowStationaryChip::*width :
         {&RowStationaryChip::filter_words_per_cycle, &RowStationaryChip::ifmap_words_per_cycle,
          &RowStationaryChip::psum_words_per_cycle}) {
      RowStationaryChip faster = chip;
      faster.*width *= 2;
      EXPECT_LE(estimate_row_stationary(faster, layer).total, base) << layer.name;
    }
    RowStationaryChip faster = chip;
    faster.core_clock = faster.core_clock * 2;
    EXPECT_LE(estimate_row_stationary(faster, layer).total, base) << layer.name;
    faster = chip;
    faster.link = faster.link * 2;
    EXPECT_LT(estimate_row_stationary(faster, layer).total, base) << layer.name;
  }
}

TEST(RowStationaryEstimate, groups_take_the_time_of_as_many_layers) {
  const RowStationaryChip chip = chip_under_test();
  const ConvLayer both = layer_of("grouped", 192, 256, 13, 3, 1, 2);
  const ConvLayer one = layer_of("one", 96, 128, 13, 3, 1);
  EXPECT_DOUBLE_EQ(estimate_row_stationary(chip, both).cycles.total(),
                   2 * estimate_row_stationary(chip, one).cycles.total());
}

TEST(RowStationaryEstimate, zeros_save_energy_and_dram_traffic_but_no_cycles) {
  const RowStationaryChip chip = chip_under_test();
  ConvLayer layer = layer_of("layer", 64, 64, 56, 3, 1);
  const RowStationaryResult few = estimate_row_stationary(chip, layer);
  layer.ifmap_zero_share = layer.ofmap_zero_share = 0.9;
  const RowStationaryResult many = estimate_row_stationary(chip, layer);
  EXPECT_EQ(many.cycles.total(), few.cycles.total());
  EXPECT_LT(many.dram.total(), few.dram.total());
  EXPECT_LT(many.energy.total(), few.energy.total());
}

TEST(RowStationaryEstimate, a_mapping_given_by_hand_is_used) {
  const RowStationaryChip chip = chip_under_test();
  const ConvLayer layer = eyeriss_layers("alexnet")[2].layer;
  RowStationaryMapping printed = choose_row_stationary_mapping(chip, layer);
  printed.channels_per_pe = 4;
  printed.sets_over_channels = 1;
  printed.sets_over_filters = 4;
  const RowStationaryResult result = estimate_row_stationary(chip, layer, printed);
  EXPECT_EQ(result.mapping, printed);
  EXPECT_NEAR(result.buffer.total().value(), 69.2e6, 0.1e6);
}

}  // namespace foretoken::row_stationary_estimate_test
