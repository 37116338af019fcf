#include "accelerator/device/designed_device.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "hardware/device_file.h"

namespace foretoken::designed_device_test {

Architecture design() {
  return {
      .name = "array",
      .clock_hz = 1e9,
      .levels = {
          {.name = "HBM", .word_bits = 16, .bandwidth = {.shared = 256}},
          {.name = "buffer", .word_bits = 16, .depth = 1 << 20, .buffers = 2},
          {.name = "cell", .instances_x = 64, .instances_y = 64, .word_bits = 16, .depth = 64, .buffers = 2},
          {.name = "multiplier", .kind = LevelKind::compute, .instances_x = 64, .instances_y = 64, .word_bits = 16}}};
}

const ConstraintsFor none = [](const Problem& /*problem*/) { return Constraints(); };

KernelPredictor predictor() {
  return KernelPredictor(device_of(design()), mapped_kernels(design(), none, 1000));
}

double seconds(const KernelShape& shape) {
  return predictor().estimate(shape).seconds.value;
}

TEST(DesignedDevice, has_the_sheet_that_its_design_implies) {
  const Device device = device_of(design());
  EXPECT_EQ(device.memory_bandwidth->value.value(), 256 * 2 * 1e9);
  EXPECT_EQ(device.dense_peak[static_cast<size_t>(DType::bf16)]->value.value(), 2 * 64 * 64 * 1e9);
  EXPECT_TRUE(device.dense_peak[static_cast<size_t>(DType::int8)]);
  EXPECT_FALSE(device.dense_peak[static_cast<size_t>(DType::fp32)]);
}

TEST(DesignedDevice, without_bandwidth_is_refused) {
  Architecture silent = design();
  silent.levels.front().bandwidth = {};
  EXPECT_THROW(device_of(silent), InputError);
}

TEST(DesignedDevice, reads_back_from_its_file) {
  const AcceleratorDesign written{.architecture = design(),
                                  .tensors = std::vector<LevelTensors>(4),
                                  .energies_given = std::vector<bool>(4, true),
                                  .areas_given = std::vector<bool>(4, true)};
  const Device read = parse_device(device_json(written).dump(), "device.json");
  EXPECT_EQ(read.memory_bandwidth->value.value(), device_of(design()).memory_bandwidth->value.value());
  const Json inside = parse_json(read.accelerator, "design");
  EXPECT_EQ(read_architecture_json(JsonView(inside, "design")).architecture.levels.size(), 4u);
}

TEST(DesignedDevice, multiplies_by_mappings_and_moves_by_bandwidth) {
  const KernelEstimate gemm = predictor().estimate(GemmShape{.m = 1024, .n = 1024, .k = 1024});
  EXPECT_EQ(gemm.tier, Tier::mapped);
  EXPECT_GE(gemm.seconds.value, 1024.0 * 1024 * 1024 / (64 * 64) / 1e9);
  const KernelEstimate norm = predictor().estimate(NormShape{.rows = 1024, .width = 4096});
  EXPECT_EQ(norm.tier, Tier::roofline);
  EXPECT_EQ(norm.seconds.value, (norm.work.bytes() / BytesPerSecond(512e9)).value());
}

TEST(DesignedDevice, more_tokens_take_longer_and_sizes_between_those_searched_lie_between) {
  double before = 0;
  for (const int64_t tokens : {64, 70, 80, 90, 96, 112, 128}) {
    const double now = seconds(GemmShape{.m = tokens, .n = 4096, .k = 4096});
    EXPECT_GE(now, before) << tokens;
    before = now;
  }
}

TEST(DesignedDevice, longer_contexts_take_longer) {
  const AttentionShape shape{.phase = AttentionPhase::decode, .batch = 16, .heads = 32, .kv_heads = 8, .kv_len = 1024};
  AttentionShape longer = shape;
  longer.kv_len = 8192;
  EXPECT_GT(seconds(longer), 4 * seconds(shape));
}

}  // namespace foretoken::designed_device_test
