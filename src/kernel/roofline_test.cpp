#include "kernel/roofline.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "kernel/kernel.h"

namespace foretoken::roofline_test {

Device device_of(double tera_flops, double giga_bytes, std::optional<int> processors) {
  Device device{.name = "made_up"};
  device.memory_bandwidth = Fact<BytesPerSecond>{.value = BytesPerSecond(giga_bytes * giga)};
  device.dense_peak[static_cast<size_t>(DType::bf16)] =
      Fact<FlopsPerSecond>{.value = FlopsPerSecond(tera_flops * tera)};
  device.dense_peak[static_cast<size_t>(DType::fp32)] =
      Fact<FlopsPerSecond>{.value = FlopsPerSecond(tera_flops / 16 * tera)};
  if (processors) device.processors = Fact<int>{.value = *processors};
  return device;
}

TEST(Roofline, the_longer_of_compute_and_memory_is_the_answer) {
  const KernelPredictor predictor(device_of(100, 1000, std::nullopt));
  const KernelEstimate large = predictor.estimate(GemmShape{.m = 4096, .n = 4096, .k = 4096});
  EXPECT_EQ(large.bound, Bound::compute);
  EXPECT_DOUBLE_EQ(large.seconds.value, 2.0 * 4096 * 4096 * 4096 / 100e12);
  const KernelEstimate thin = predictor.estimate(GemmShape{.m = 1, .n = 4096, .k = 4096});
  EXPECT_EQ(thin.bound, Bound::memory);
  EXPECT_DOUBLE_EQ(thin.seconds.value, 2.0 * (4096.0 * 4096 + 2 * 4096) / 1000e9);
  EXPECT_EQ(thin.seconds.kind, Confidence::roofline);
}

TEST(Roofline, without_a_processor_count_there_are_no_waves) {
  const KernelEstimate estimate =
      KernelPredictor(device_of(100, 1000, std::nullopt)).estimate(GemmShape{.m = 77, .n = 77, .k = 77});
  EXPECT_EQ(estimate.waves, 0);
  EXPECT_EQ(estimate.wave_efficiency, 1);
}

TEST(Roofline, one_row_fills_no_tile_on_a_device_without_matrix_units) {
  Device device = device_of(10, 1000, 20);
  const GemmShape row{.m = 1, .n = 4096, .k = 4096};
  const double ideal = 2.0 * 4096 * 4096 / 10e12;
  EXPECT_GT(KernelPredictor(device).estimate(row).compute.value(), 10 * ideal);
  device.dense_peak[static_cast<size_t>(DType::fp32)] = device.dense_peak[static_cast<size_t>(DType::bf16)];
  EXPECT_DOUBLE_EQ(KernelPredictor(device).estimate(row).compute.value(), ideal);
  device.dense_peak[static_cast<size_t>(DType::bf16)].reset();
  device.kind = DeviceKind::cpu;
  EXPECT_DOUBLE_EQ(KernelPredictor(device).estimate(row).compute.value(), ideal) << "its sheet lists fp32 alone";
}

TEST(Roofline, tiles_that_just_fill_the_processors_lose_nothing_and_one_more_starts_a_wave) {
  const TileGrid full{.m = 16 * 10, .n = 64, .k = 64};
  EXPECT_EQ(wave_stretch(full, 10).stretch, 1);
  const TileGrid one_more{.m = 16 * 11, .n = 64, .k = 64};
  EXPECT_NEAR(wave_stretch(one_more, 10).stretch, 20.0 / 11, 1e-12);
}

TEST(Roofline, splitting_k_fills_idle_processors) {
  TileGrid grid{.m = 16, .n = 64, .k = 4096};
  EXPECT_EQ(wave_stretch(grid, 8).stretch, 8);
  grid.splits_k = true;
  EXPECT_EQ(wave_stretch(grid, 8).stretch, 1);
}

TEST(Roofline, unequal_groups_take_at_least_a_tile_each) {
  const TileGrid grid{.groups = 100, .m = 1, .n = 64, .k = 64, .unequal = true};
  EXPECT_EQ(wave_stretch(grid, 10).stretch, 16);
}

TEST(Roofline, a_device_that_lacks_the_facts_is_refused) {
  Device no_bandwidth = device_of(100, 1000, 10);
  no_bandwidth.memory_bandwidth.reset();
  EXPECT_THROW(KernelPredictor{no_bandwidth}, InputError);
  Device no_peak = device_of(100, 1000, 10);
  no_peak.dense_peak = {};
  EXPECT_THROW(KernelPredictor{no_peak}, InputError);
}

TEST(Roofline, a_multiply_without_a_peak_is_refused) {
  Device device = device_of(100, 1000, 10);
  device.dense_peak = {};
  device.dense_peak[static_cast<size_t>(DType::fp4)] = Fact<FlopsPerSecond>{.value = FlopsPerSecond(tera)};
  EXPECT_THROW(KernelPredictor(device).estimate(GemmShape{.m = 8, .n = 8, .k = 8}), InputError);
}

TEST(Roofline, a_device_that_multiplies_integers_only_converts_other_formats) {
  Device device = device_of(100, 1000, 10);
  device.dense_peak = {};
  device.dense_peak[static_cast<size_t>(DType::int8)] = Fact<FlopsPerSecond>{.value = FlopsPerSecond(tera)};
  const KernelPredictor predictor(device);
  const GemmShape wide{.m = 512, .n = 512, .k = 512};
  GemmShape narrow = wide;
  narrow.scheme = Scheme::int8;
  EXPECT_GE(predictor.estimate(wide).seconds.value, predictor.estimate(narrow).seconds.value);
  EXPECT_NO_THROW(predictor.estimate(NormShape{.rows = 8, .width = 8}));
}

std::vector<KernelShape> shapes_with(int64_t size) {
  return {GemmShape{.m = size, .n = 4096, .k = 1024},
          GemmShape{.m = size, .n = 96, .k = 8192, .scheme = Scheme::int4_wo},
          AttentionShape{.batch = 2, .heads = 24, .kv_heads = 8, .q_len = size, .kv_len = size},
          AttentionShape{.batch = 2, .heads = 24, .kv_heads = 8, .q_len = size, .kv_len = size, .window = 128},
          AttentionShape{.phase = AttentionPhase::decode, .batch = size, .heads = 24, .kv_heads = 8, .kv_len = 777},
          AttentionShape{
              .phase = AttentionPhase::encoder, .batch = size, .heads = 3, .kv_heads = 3, .q_len = 50, .kv_len = 50},
          LatentAttentionShape{.heads = 16, .q_len = size, .kv_len = size},
          LatentProjectionShape{.tokens = size, .heads = 5},
          MoeShape{.tokens = size, .hidden = 512, .inter = 256, .top_k = 4, .experts = 32},
          NormShape{.rows = size, .width = 4096},
          ConvShape{.batch = size,
                    .in_channels = 16,
                    .out_channels = 24,
                    .height = 9,
                    .width = 9,
                    .kernel_height = 3,
                    .kernel_width = 3}};
}

TEST(Roofline, more_work_is_never_faster) {
  const KernelPredictor predictor(device_of(300, 2000, 108));
  std::vector<KernelShape> smaller = shapes_with(1);
  for (int64_t size = 2; size < 6000; size += 1 + size / 9) {
    const std::vector<KernelShape> larger = shapes_with(size);
    for (size_t i = 0; i < larger.size(); ++i) {
      const double before = predictor.estimate(smaller[i]).seconds.value,
                   after = predictor.estimate(larger[i]).seconds.value;
      EXPECT_GE(after, before * (1 - 1e-12)) << family_name(larger[i]) << " shape " << i << " at " << size;
    }
    smaller = larger;
  }
}

TEST(Roofline, more_bandwidth_or_a_higher_peak_is_never_slower) {
  const KernelPredictor base(device_of(300, 2000, 108)), wide(device_of(300, 3000, 108)),
      fast(device_of(400, 2000, 108));
  for (const int64_t size : {1, 100, 5000}) {
    for (const KernelShape& shape : shapes_with(size)) {
      EXPECT_LE(wide.estimate(shape).seconds.value, base.estimate(shape).seconds.value);
      EXPECT_LE(fast.estimate(shape).seconds.value, base.estimate(shape).seconds.value);
    }
  }
}

TEST(Roofline, no_prediction_beats_peak_or_bandwidth) {
  const Device device = device_of(300, 2000, 108);
  const KernelPredictor predictor(device);
  for (int64_t size = 1; size < 3000; size += 37) {
    for (const KernelShape& shape : shapes_with(size)) {
      const KernelEstimate estimate = predictor.estimate(shape);
      const Seconds flops_at_peak = estimate.work.flops / *device.peak_or_fallback(estimate.work.math);
      EXPECT_GE(estimate.compute.value(), flops_at_peak.value() * (1 - 1e-12));
      EXPECT_DOUBLE_EQ(estimate.memory.value(), estimate.work.bytes().value() / 2000e9);
      EXPECT_EQ(estimate.seconds.value, std::max(estimate.compute, estimate.memory).value());
      EXPECT_LE(estimate.wave_efficiency, 1);
      EXPECT_GT(estimate.wave_efficiency, 0);
    }
  }
}

}  // namespace foretoken::roofline_test
