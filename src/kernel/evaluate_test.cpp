#include "kernel/evaluate.h"

#include <gtest/gtest.h>

#include "kernel/test_support.h"

namespace foretoken::evaluate_test {

using namespace test_support;

class Evaluate : public testing::Test {
 protected:
  const FormKind& kind = form_named("memory");
  std::unique_ptr<Form> form = kind.make(Caches::benchmark);
  FormCalibration calibration = start_calibration(kind);
  DeviceTraits traits = traits_named("h100_sxm");
  FormCall call{.shape = NormShape{.rows = 4096, .width = 4096}, .variant = {}};
  size_t constants = form->constants().size();
};

TEST_F(Evaluate, effects_add_up_and_unknown_ones_are_left_out) {
  const std::vector<double> start = cross_log_constants(*form, calibration, call, traits, "");
  for (size_t k = 0; k < constants; ++k) EXPECT_DOUBLE_EQ(start[k], std::log(form->constants()[k].start));
  calibration.effects["operation rms_norm"] = std::vector<double>(constants, 0.01);
  calibration.effects["device h100_sxm"] = std::vector<double>(constants, 0.02);
  calibration.effects["group h100_sxm rms_norm"] = std::vector<double>(constants, 0.005);
  calibration.effects["device a100_sxm"] = std::vector<double>(constants, 3);
  const std::vector<double> unmeasured = cross_log_constants(*form, calibration, call, traits, "");
  const std::vector<double> measured = cross_log_constants(*form, calibration, call, traits, "h100_sxm");
  for (size_t k = 0; k < constants; ++k) {
    EXPECT_NEAR(unmeasured[k] - start[k], 0.01, 1e-12);
    EXPECT_NEAR(measured[k] - start[k], 0.035, 1e-12);
  }
  const FormCall rope{.shape = RopeShape{.tokens = 9, .heads = 2}, .variant = {}};
  EXPECT_EQ(cross_log_constants(*form, calibration, rope, traits, ""), start);
}

TEST_F(Evaluate, constants_stay_within_the_bounds_of_the_form) {
  for (const double shove : {-30.0, 30.0}) {
    calibration.effects["operation rms_norm"] = std::vector<double>(constants, shove);
    const std::vector<double> logs = cross_log_constants(*form, calibration, call, traits, "");
    for (size_t k = 0; k < constants; ++k) {
      const FormConstant& c = form->constants()[k];
      EXPECT_DOUBLE_EQ(logs[k], std::log(shove < 0 ? c.least : c.most));
    }
  }
}

TEST_F(Evaluate, trees_multiply_the_time_by_their_strength) {
  const std::vector<double> logs = cross_log_constants(*form, calibration, call, traits, "");
  const double bare = form_seconds_with_residual(*form, call, traits, logs, {}, 1, std::nullopt);
  EXPECT_NEAR(bare, form_seconds(*form, call, traits, start_constants(*form)), 1e-12 * bare);
  const BoostedTrees trees = constant_trees(form->feature_count(), 0.5F);
  EXPECT_NEAR(form_seconds_with_residual(*form, call, traits, logs, trees, 1, std::nullopt), bare * std::exp(0.5),
              1e-6 * bare);
  EXPECT_NEAR(form_seconds_with_residual(*form, call, traits, logs, trees, 0.5, std::nullopt), bare * std::exp(0.25),
              1e-6 * bare);
  EXPECT_EQ(form_seconds_with_residual(*form, call, traits, logs, trees, 0, std::nullopt), bare);
}

TEST_F(Evaluate, trees_of_a_measured_device_see_the_group_and_the_sizes_too) {
  const std::vector<double> logs = cross_log_constants(*form, calibration, call, traits, "");
  const std::vector<float> cross = residual_features(*form, call, traits, logs, std::nullopt);
  const std::vector<float> measured = residual_features(*form, call, traits, logs, 7.0F);
  ASSERT_EQ(cross.size(), form->feature_count());
  ASSERT_EQ(measured.size(), form->feature_count() + 1 + raw_feature_count);
  EXPECT_TRUE(std::equal(cross.begin(), cross.end(), measured.begin()));
  EXPECT_EQ(measured[cross.size()], 7);
  const auto raw = raw_features(call);
  EXPECT_TRUE(std::equal(raw.begin(), raw.end(), measured.begin() + static_cast<std::ptrdiff_t>(cross.size()) + 1));
}

// Of boards of one chip family: swept on `swept`, asked about `other`.
class Carried : public testing::Test {
 protected:
  static CarriedTime carried(const GemmShape& shape, const DeviceTraits& swept, const DeviceTraits& other,
                             bool pairs_known = false) {
    const std::unique_ptr<Form> form = form_named("gemm").make(Caches::cold);
    const FormCall call{.shape = shape, .variant = {}};
    const std::vector<double> constants = start_constants(*form);
    return carried_to_sibling(*form, call, swept, other, constants, form_seconds(*form, call, swept, constants),
                              pairs_known);
  }
  static double seconds(const GemmShape& shape, const DeviceTraits& swept, const DeviceTraits& other) {
    return carried(shape, swept, other).seconds;
  }
  DeviceTraits l40s = traits_named("l40s");
  GemmShape large{.m = 4096, .n = 8192, .k = 8192};
  GemmShape streaming{.m = 1, .n = 28672, .k = 8192};
};

TEST_F(Carried, a_board_with_more_power_multiplies_faster_until_nothing_holds_it_back) {
  const double same = seconds(large, l40s, l40s);
  DeviceTraits other = l40s;
  double before = same;
  for (const double watts : {380.0, 420.0, 450.0}) {
    other.power = watts;
    EXPECT_LT(seconds(large, l40s, other), before);
    before = seconds(large, l40s, other);
  }
  other.power = 600;
  const double free = seconds(large, l40s, other);
  other.power = 900;
  EXPECT_EQ(seconds(large, l40s, other), free);
  other.power = 300;
  EXPECT_GT(seconds(large, l40s, other), same);
  EXPECT_NEAR(seconds(streaming, l40s, other) / seconds(streaming, l40s, l40s), 1, 0.01);
}

TEST(PoweredTraits, multiply_units_run_as_fast_as_the_power_of_their_board_allows) {
  constexpr auto bf16 = static_cast<size_t>(DType::bf16);
  const DeviceTraits l40s = traits_named("l40s"), a100 = traits_named("a100_sxm"), h100 = traits_named("h100_sxm");
  EXPECT_NEAR(powered_traits(l40s).peak[bf16] / l40s.peak[bf16], 0.77, 0.02);
  EXPECT_EQ(powered_traits(l40s).bandwidth, l40s.bandwidth);
  EXPECT_EQ(powered_traits(a100).peak[bf16], a100.peak[bf16]);
  EXPECT_EQ(powered_traits(h100).peak[bf16], h100.peak[bf16]) << "asynchronous tensor cores need less";
}

TEST(PoweredTraits, boards_with_stacked_memory_follow_the_power_of_their_clock) {
  constexpr auto bf16 = static_cast<size_t>(DType::bf16);
  DeviceTraits a100 = traits_named("a100_sxm");
  const double full = powered_traits(a100).peak[bf16];
  a100.power = 250;
  EXPECT_NEAR(powered_traits(a100).peak[bf16] / full, 0.83, 0.01);
}

TEST(PoweredTraits, multiplies_at_half_the_rate_lose_less_beside_them_and_cards_hold_their_own_clock) {
  constexpr auto bf16 = static_cast<size_t>(DType::bf16);
  const DeviceTraits whole = traits_named("a6000"), half = traits_named("a10g");
  EXPECT_EQ(powered_traits(whole).peak[bf16], whole.peak[bf16]);
  EXPECT_NEAR(powered_traits(half).peak[bf16] / half.peak[bf16], 1.057, 0.002);
  DeviceTraits card = half;
  card.held_clock = 1.1;
  EXPECT_NEAR(powered_traits(card).peak[bf16] / powered_traits(half).peak[bf16], 1.1, 1e-9);
  EXPECT_NEAR(powered_traits(card).clock / half.clock, 1.1, 1e-9);
  EXPECT_EQ(powered_traits(card).bandwidth, half.bandwidth);
}

TEST_F(Carried, a_board_at_half_the_rate_comes_nearer_to_its_peak_than_the_one_that_was_swept) {
  DeviceTraits half = l40s;
  half.power /= 2;
  for (double& peak : half.peak) peak /= 2;
  GpuGeneration of_unknown_rate = *half.generation;
  of_unknown_rate.multiplies_per_clock = 0;
  DeviceTraits by_peak = half;
  by_peak.generation = &of_unknown_rate;
  const double gain = seconds(large, l40s, by_peak) / seconds(large, l40s, half);
  EXPECT_GT(gain, 1.03);
  EXPECT_LT(gain, 1.06);
}

TEST_F(Carried, a_card_that_runs_above_its_sheet_multiplies_faster_and_streams_alike) {
  const DeviceTraits card = traits_named("rtx_4090");
  ASSERT_GT(card.held_clock, 1);
  DeviceTraits by_sheet = card;
  by_sheet.held_clock = 1;
  EXPECT_NEAR(seconds(large, l40s, by_sheet) / seconds(large, l40s, card), card.held_clock, 0.02);
  EXPECT_NEAR(seconds(streaming, l40s, by_sheet) / seconds(streaming, l40s, card), 1, 0.02);
}

TEST_F(Carried, corrections_of_a_board_that_power_holds_back_are_kept_where_memory_decides) {
  const std::unique_ptr<Form> form = form_named("gemm").make(Caches::cold);
  const std::vector<double> constants = start_constants(*form);
  const auto kept = [&](const GemmShape& shape, const DeviceTraits& swept) {
    return carried_residual(*form, {.shape = shape, .variant = {}}, swept, constants);
  };
  EXPECT_LT(kept(large, l40s), 0.2);
  EXPECT_GT(kept(streaming, l40s), 0.95);
  EXPECT_EQ(kept(large, traits_named("h100_sxm")), 1);
}

TEST_F(Carried, a_board_without_codes_in_its_memory_streams_faster) {
  DeviceTraits other = l40s;
  other.inline_ecc = false;
  ASSERT_TRUE(l40s.inline_ecc);
  const double ratio = seconds(streaming, l40s, other) / seconds(streaming, l40s, l40s);
  EXPECT_LT(ratio, 0.9);
  EXPECT_NEAR(seconds(streaming, other, l40s) / seconds(streaming, other, other), 1 / ratio, 0.01);
}

TEST_F(Carried, asynchronous_tensor_cores_are_not_held_by_this_rule) {
  const DeviceTraits h100 = traits_named("h100_sxm");
  DeviceTraits other = h100;
  other.power = 2 * h100.power;
  EXPECT_EQ(seconds(large, h100, other), seconds(large, h100, h100));
}

TEST_F(Carried, what_two_sheets_leave_open_widens_the_interval_of_the_kernels_that_it_moves) {
  const DeviceTraits b200 = traits_named("b200_sxm");
  const double twins = carried(large, b200, b200).half_width,
               streaming_twins = carried(streaming, b200, b200).half_width;
  EXPECT_GT(twins, 0.01);
  EXPECT_EQ(carried(large, b200, b200, true).half_width, 0) << "in the widths of measured pairs";
  EXPECT_GT(carried(large, l40s, l40s, true).half_width, 0.05) << "cards run above their clock";
  EXPECT_LT(twins, 0.05) << "the same sheet twice";
  DeviceTraits power = b200;
  power.power *= 1.4;
  EXPECT_GT(carried(large, b200, power).half_width, twins + 0.04) << "boards of one chip with other limits";
  EXPECT_NEAR(carried(streaming, b200, power).half_width, streaming_twins, 0.005);
  DeviceTraits clock = b200;
  clock.clock *= 1.1;
  for (double& peak : clock.peak) peak *= 1.1;
  EXPECT_GT(carried(large, b200, clock).half_width, twins + 0.02);
  DeviceTraits memory = b200;
  memory.bandwidth *= 1.5;
  EXPECT_GT(carried(streaming, b200, memory).half_width, streaming_twins + 0.02);
  EXPECT_NEAR(carried(large, b200, memory).half_width, twins, 0.01);
  const GemmShape tiny{.m = 1, .n = 256, .k = 256};
  EXPECT_GT(carried(tiny, b200, b200).half_width, 0.05) << "mostly launch: hosts differ";
}

TEST_F(Carried, a_format_that_only_some_kernels_speed_up_is_taken_half_way_and_left_open) {
  const DeviceTraits b200 = traits_named("b200_sxm");
  DeviceTraits ultra = b200;
  ultra.peak[static_cast<size_t>(DType::fp4)] *= 1.5;
  GemmShape fp4 = large;
  fp4.scheme = Scheme::nvfp4;
  const double same = seconds(fp4, b200, b200);
  const CarriedTime found = carried(fp4, b200, ultra);
  EXPECT_LT(found.seconds, same / 1.05);
  EXPECT_GT(found.seconds, same / 1.3);
  EXPECT_GT(found.seconds * std::exp(found.half_width), same / 1.03) << "a kernel that gains nothing";
  EXPECT_LT(found.seconds * std::exp(-found.half_width), same / 1.12)
      << "one that gains all of it: quantizing and storing do not";
  EXPECT_EQ(seconds(large, b200, ultra), seconds(large, b200, b200));
}

}  // namespace foretoken::evaluate_test
