#include "accelerator/device/designed_device.h"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "accelerator/formats/designs.h"
#include "accelerator/formats/mapper_constraints.h"
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
  // By memory or by a vector unit of one operation for each of the 64 columns, which is the slower here.
  EXPECT_DOUBLE_EQ(norm.seconds.value, norm.work.flops.value() / 64e9);
  const KernelEstimate copied = predictor().estimate(EmbeddingShape{.tokens = 1024, .width = 4096});
  EXPECT_EQ(copied.seconds.value, (copied.work.bytes() / BytesPerSecond(512e9)).value());
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

TEST(DesignedDevice, scores_of_a_prompt_stay_on_the_chip_where_there_is_room) {
  AttentionShape prompt{.phase = AttentionPhase::prefill, .batch = 1, .heads = 8, .kv_heads = 8};
  prompt.head_dim = 64;
  prompt.q_len = prompt.kv_len = 1024;
  const auto on = [&](int64_t buffer_words) {
    Architecture own = design();
    own.levels.front().bandwidth.shared = 32;  // scores on their way out and in again would take most of the time
    own.levels[1].depth = buffer_words;
    own.vector.operations_per_cycle = 1e9;
    return KernelPredictor(device_of(own), mapped_kernels(own, none, 1000)).estimate(prompt).seconds.value;
  };
  const double scores = 8.0 * 1024 * 1024, others = 4 * 8.0 * 1024 * 64;
  // The mask halves the work; scores would go out once and come back once.
  const double through_memory = (2 * scores + others) / 2 / 32 / 1e9;
  EXPECT_LT(on(1 << 20), 0.5 * through_memory);
  EXPECT_GT(on(128), 0.9 * through_memory);  // no room for one query's scores
}

Architecture integer_design() {
  Architecture own = design();
  own.levels.back().component = "intmac";
  for (AcceleratorLevel& level : own.levels) level.word_bits = 8;
  return own;
}

TEST(DesignedDevice, integer_multipliers_have_no_floating_point_peaks_and_take_other_formats_by_conversion) {
  const Device device = device_of(integer_design());
  const auto has = [&](DType type) { return device.dense_peak[static_cast<size_t>(type)].has_value(); };
  EXPECT_TRUE(has(DType::int8) && has(DType::int4));
  EXPECT_FALSE(has(DType::fp8) || has(DType::fp4) || has(DType::bf16));
  EXPECT_TRUE(device.multiplies_integers_only());
  EXPECT_EQ(device.type_or_fallback(DType::bf16), DType::int8);
  EXPECT_EQ(device.type_or_fallback(DType::fp64), std::nullopt);
  const auto notes = mapped_kernels(integer_design(), none)->notes();
  ASSERT_EQ(notes.size(), 2u);
  EXPECT_NE(notes[0].find("8-bit integers only"), std::string::npos);
  EXPECT_NE(notes[1].find("64 operations per cycle"), std::string::npos);
}

TEST(DesignedDevice, a_memory_of_a_known_kind_without_a_rate_is_a_usual_module_and_says_so) {
  Architecture silent = integer_design();
  silent.levels.front().bandwidth = {};
  silent.levels.front().component = "LPDDR4";
  const Device device = device_of(silent);
  EXPECT_NEAR(device.memory_bandwidth->value.value(), 25.6e9, 1);
  EXPECT_TRUE(device.memory_bandwidth->assumed);
  EXPECT_TRUE(device.memory->assumed);
  const auto notes = mapped_kernels(silent, none)->notes();
  EXPECT_NE(notes.back().find("LPDDR4-3200"), std::string::npos);
  EXPECT_NO_THROW(check_sheet(device, silent));
}

TEST(DesignedDevice, formats_of_weights_and_cache_change_the_time) {
  const KernelPredictor own(device_of(design()), mapped_kernels(design(), none, 1000));
  const auto gemm = [&](Scheme scheme) {
    return own.estimate(GemmShape{.m = 1, .n = 4096, .k = 4096, .scheme = scheme}).seconds.value;
  };
  EXPECT_LT(gemm(Scheme::int8_wo), 0.7 * gemm(Scheme::bf16));
  EXPECT_LT(gemm(Scheme::int4_wo), 0.7 * gemm(Scheme::int8_wo));
  AttentionShape attention{.phase = AttentionPhase::decode, .batch = 8, .heads = 32, .kv_heads = 32, .kv_len = 2048};
  const double bf16 = own.estimate(attention).seconds.value;
  attention.kv_dtype = DType::fp8;
  EXPECT_LT(own.estimate(attention).seconds.value, 0.8 * bf16);
}

TEST(DesignedDevice, a_slow_vector_unit_holds_up_norms_and_softmax) {
  Architecture slow = design();
  slow.vector.operations_per_cycle = 1;
  const KernelPredictor own(device_of(slow), mapped_kernels(slow, none, 300));
  const KernelEstimate norm = own.estimate(NormShape{.rows = 64, .width = 4096});
  EXPECT_GE(norm.seconds.value, norm.work.flops.value() / 1e9);
  AttentionShape attention{.phase = AttentionPhase::decode, .batch = 1, .heads = 8, .kv_heads = 8, .kv_len = 1024};
  EXPECT_GE(own.estimate(attention).seconds.value, 5 * 8 * 1024 / 1e9);
  EXPECT_EQ(mapped_kernels(slow, none)->notes().size(), 0u);
}

// The linear layers and attention of a small language model, `tokens` at a time: none may beat the multipliers, nor the
// memory that weights, cache and activations come from.
TEST(DesignedDevice, twenty_steps_of_shipped_int8_designs_keep_their_floors) {
  const AcceleratorCatalogue catalogue(FORETOKEN_SOURCE_DIR "/data/accelerators");
  int steps = 0;
  for (const char* name : {"tpu_v1", "nvdla_large", "nvdla_small", "simba", "gemm_array_16x16"}) {
    const AcceleratorDesign loaded = catalogue.design(name).design;
    const ConstraintsFor constraints = [&](const Problem& problem) { return design_constraints(loaded, problem); };
    const Device device = device_of(loaded.architecture);
    const KernelPredictor own(device, mapped_kernels(loaded.architecture, constraints, 300));
    const double macs_per_second =
        static_cast<double>(instances(loaded.architecture.levels.back())) * loaded.architecture.clock_hz;
    double int8_decode = 0;
    for (const auto& [tokens, scheme] : std::vector<std::pair<int64_t, Scheme>>{
             {1, Scheme::int8}, {1, Scheme::int4_wo}, {8, Scheme::int8}, {128, Scheme::int8}}) {
      const bool decodes = tokens < 128;
      std::vector<KernelShape> shapes;
      for (const auto& [n, k] : {std::pair{1024, 512}, {512, 512}, {2048, 512}, {512, 2048}}) {
        shapes.push_back(GemmShape{.m = tokens, .n = n, .k = k, .scheme = scheme});
      }
      shapes.push_back(AttentionShape{.phase = decodes ? AttentionPhase::decode : AttentionPhase::prefill,
                                      .batch = decodes ? tokens : 1,
                                      .heads = 8,
                                      .kv_heads = 2,
                                      .head_dim = 64,
                                      .q_len = decodes ? 1 : tokens,
                                      .kv_len = 128,
                                      .kv_dtype = DType::int8});
      double seconds = 0;
      for (const KernelShape& shape : shapes) {
        const KernelEstimate kernel = own.estimate(shape);
        const double macs = kernel.work.flops.value() / 2;
        EXPECT_GE(kernel.seconds.value, macs / macs_per_second) << name << " " << tokens;
        EXPECT_GE(kernel.seconds.value, kernel.work.bytes().value() / device.memory_bandwidth->value.value()) << name;
        EXPECT_LE(kernel.seconds.low, kernel.seconds.value);
        EXPECT_GE(kernel.seconds.high, kernel.seconds.value);
        EXPECT_EQ(kernel.tier, Tier::mapped);
        seconds += kernel.seconds.value;
      }
      EXPECT_LT(seconds, 1) << name << " " << tokens;
      if (tokens == 1 && scheme == Scheme::int8) int8_decode = seconds;
      if (scheme == Scheme::int4_wo) {
        EXPECT_LT(seconds, int8_decode) << name;
      }
      ++steps;
    }
  }
  EXPECT_EQ(steps, 20);
}

// Park et al., AttAcc, ASPLOS 2024: nine times the bandwidth of its stacks' interfaces, 3.35 TB/s, for keys and values.
TEST(DesignedDevice, attention_beside_the_banks_takes_a_ninth_of_what_the_interface_takes) {
  const AcceleratorDesign loaded =
      AcceleratorCatalogue(FORETOKEN_SOURCE_DIR "/data/accelerators").design("attacc").design;
  const KernelPredictor own(
      device_of(loaded.architecture),
      mapped_kernels(loaded.architecture, [&](const Problem& problem) { return design_constraints(loaded, problem); }));
  // A layer of GPT-3 175B on one of eight devices: 12 heads.
  const KernelEstimate attention = own.estimate(AttentionShape{
      .phase = AttentionPhase::decode, .batch = 44, .heads = 12, .kv_heads = 12, .head_dim = 128, .kv_len = 3072});
  const double over_interface = attention.work.bytes().value() / (5 * 670.4e9);
  EXPECT_GT(over_interface / attention.seconds.value, 6);
  EXPECT_LT(over_interface / attention.seconds.value, 9.05);
}

TEST(DesignedDevice, power_of_a_design_is_what_its_energies_add_up_to) {
  Architecture own = integer_design();
  own.levels[0].energy = {.read_pj = 10, .fill_pj = 10, .update_pj = 10};
  own.levels[1].energy = {.read_pj = 1, .fill_pj = 1, .update_pj = 1};
  own.levels[2].energy = {.read_pj = 0.1, .fill_pj = 0.1, .update_pj = 0.1};
  own.levels[3].energy = {.compute_pj = 0.2, .leak_pj_per_cycle = 0.01};
  const PowerCalibration power = design_power(own, none);
  EXPECT_EQ(power.constants[byte_joules], 10e-12);
  EXPECT_NEAR(power.idle_watts, 64 * 64 * 0.01e-12 * 1e9, 1e-9);
  EXPECT_GE(power.constants[fp8_flop_joules], 0.1e-12);  // half a multiply-add
  EXPECT_LE(power.constants[fp8_flop_joules], 2e-12);
  const AcceleratorDesign written{.architecture = own,
                                  .tensors = std::vector<LevelTensors>(4),
                                  .energies_given = std::vector<bool>(4, true),
                                  .areas_given = std::vector<bool>(4, true)};
  EXPECT_NEAR(parse_device(device_json(written).dump(), "device.json").power_limit->value.value(), power.limit_watts,
              1e-6 * power.limit_watts);
  EXPECT_GE(power.limit_watts, 2 * 64 * 64 * 1e9 * power.constants[fp8_flop_joules]);
}

}  // namespace foretoken::designed_device_test
