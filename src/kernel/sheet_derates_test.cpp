#include "kernel/sheet_derates.h"

#include <gtest/gtest.h>

#include <cmath>

#include <fmt/format.h>

#include "base/error.h"
#include "base/file.h"
#include "hardware/catalogue.h"
#include "kernel/kernel.h"

namespace foretoken::sheet_derates_test {

// Kernels of a device that take floor + compute / share + memory / share, with a scatter of +-20%.
std::vector<DerateSample> planted(std::string_view device, const SheetDerate& truth) {
  std::vector<DerateSample> rows;
  for (int i = 0; i < 600; ++i) {
    const double compute = 1e-7 * std::pow(1.03, i % 300), memory = 1e-7 * std::pow(1.03, (i * 7) % 300);
    const double scatter = 0.8 + 0.4 * ((i * 37) % 100) / 99.0;
    rows.push_back({.device = device,
                    .measured_seconds = truth.seconds(compute, memory) * scatter,
                    .compute_seconds = compute,
                    .memory_seconds = memory});
  }
  return rows;
}

const SheetDerates& shipped() {
  static const SheetDerates derates = read_sheet_derates(FORETOKEN_SOURCE_DIR "/data/kernels/sheet_derates.json");
  return derates;
}

TEST(SheetDerates, planted_shares_are_found_again) {
  const FamilyDerates found =
      fit_family_derates(planted("a", {.floor_us = 5, .compute_share = 0.5, .memory_share = 0.8}));
  EXPECT_NEAR(found.middle.floor_us, 5, 0.8);
  EXPECT_NEAR(found.middle.compute_share, 0.5, 0.05);
  EXPECT_NEAR(found.middle.memory_share, 0.8, 0.08);
  EXPECT_LT(found.fast.floor_us, 5);
  EXPECT_GT(found.slow.floor_us, 5);
}

TEST(SheetDerates, devices_that_differ_widen_the_interval) {
  const SheetDerate good{.floor_us = 3, .compute_share = 0.8, .memory_share = 0.8};
  const SheetDerate bad{.floor_us = 9, .compute_share = 0.4, .memory_share = 0.4};
  std::vector<DerateSample> rows = planted("a", good);
  const FamilyDerates alone = fit_family_derates(rows);
  for (const auto& [device, truth] : {std::pair{"b", good}, std::pair{"c", bad}, std::pair{"d", bad}}) {
    const std::vector<DerateSample> more = planted(device, truth);
    rows.insert(rows.end(), more.begin(), more.end());
  }
  const FamilyDerates together = fit_family_derates(rows);
  EXPECT_GT(together.slow.seconds(1e-4, 1e-4), 1.5 * alone.slow.seconds(1e-4, 1e-4));
  EXPECT_EQ(together.left_out_coverage.size(), 4U);
}

TEST(SheetDerates, more_work_or_a_worse_device_is_never_faster) {
  for (const auto& [name, family] : shipped().families) {
    double before = 0;
    for (double seconds = 1e-8; seconds < 1; seconds *= 1.5) {
      const Estimate time = shipped().seconds(name, seconds, 2 * seconds);
      EXPECT_GE(time.low, 2 * seconds) << name << ": below the roofline";
      EXPECT_LE(time.low, time.value) << name;
      EXPECT_LE(time.value, time.high) << name;
      EXPECT_GT(time.value, before) << name;
      before = time.value;
    }
  }
}

TEST(SheetDerates, what_is_written_reads_back) {
  const std::filesystem::path path = std::filesystem::path(testing::TempDir()) / "sheet_derates.json";
  write_file(path, sheet_derates_json(shipped()));
  EXPECT_EQ(sheet_derates_json(read_sheet_derates(path)), sheet_derates_json(shipped()));
  write_file(path, R"({"source": "x", "fitted_on": "", "devices": [], "other": {}, "families": {"gemm": {"rows": 1,
      "floor_us": [3, 2, 1], "compute_share": [1, 1, 1], "memory_share": [1, 1, 1]}}})");
  EXPECT_THROW(read_sheet_derates(path), InputError);
}

TEST(SheetDerates, the_file_that_ships_knows_the_families_of_serving_steps) {
  EXPECT_FALSE(shipped().source.empty());
  EXPECT_GE(shipped().devices.size(), 6U);
  for (const char* family : {"gemm", "attention_prefill", "attention_decode", "moe", "norm", "rope", "activation"}) {
    const FamilyDerates& derates = shipped().of(family);
    EXPECT_GT(derates.rows, 0) << family;
    // Both bounds at once, of a call of some microseconds and of a long one.
    for (const double seconds : {1e-5, 1e-3}) {
      const Estimate derated = shipped().seconds(family, seconds, seconds);
      EXPECT_GT(derated.value, 1.3 * seconds) << family;
      EXPECT_GT(derated.high, 1.2 * derated.value) << family;
      EXPECT_GE(derated.low, seconds) << family;
    }
  }
  EXPECT_EQ(&shipped().of("attention_mixed"), &shipped().of("attention_prefill"));
  EXPECT_EQ(&shipped().of("no such family"), &shipped().other);
}

TEST(SheetDerates, a_recurrent_decode_is_not_charged_the_floor_of_a_prompt) {
  LinearAttentionShape mixer{.kind = LinearAttentionKind::kda, .value_heads = 32};
  EXPECT_EQ(derate_group(mixer), "linattn_kda");
  mixer.decode = true;
  EXPECT_EQ(derate_group(mixer), "linattn_kda_decode");
  mixer.stage = LinearAttentionStage::convolution;
  EXPECT_EQ(derate_group(mixer), "linattn_kda_decode_convolution");
  EXPECT_EQ(derate_group(GemmShape{}), "gemm");
  for (const char* kind : {"gdn", "kda", "mamba2"}) {
    const FamilyDerates& decode = shipped().of(fmt::format("linattn_{}_decode_convolution", kind));
    EXPECT_GT(decode.rows, 0) << kind;
    EXPECT_LT(decode.middle.floor_us, 20) << kind;
  }
  EXPECT_LT(shipped().of("linattn_kda_decode").middle.floor_us, 20);
}

TEST(SheetDerates, a_predictor_derates_unless_the_bound_is_asked_for) {
  const Device device = HardwareCatalogue(FORETOKEN_SOURCE_DIR "/data/hardware").device("mi300x");
  const auto with = [&](Tier tier) {
    return KernelPredictor(device, {}, nullptr, tier)
        .with_description(derated_sheet(device, shipped()))
        .estimate(GemmShape{.m = 4096, .n = 4096, .k = 4096});
  };
  const KernelEstimate best = with(Tier::best), bound = with(Tier::roofline);
  EXPECT_TRUE(best.derated);
  EXPECT_FALSE(bound.derated);
  EXPECT_EQ(best.tier, Tier::roofline);
  EXPECT_EQ(best.seconds.kind, Confidence::roofline);
  EXPECT_GT(best.seconds.value, 1.2 * bound.seconds.value);
  EXPECT_EQ(bound.seconds.value, std::max(bound.compute, bound.memory).value());
}

}  // namespace foretoken::sheet_derates_test
