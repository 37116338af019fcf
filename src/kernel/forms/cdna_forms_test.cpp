#include <gtest/gtest.h>

#include "base/random.h"
#include "kernel/forms/cdna.h"
#include "kernel/forms/gemm_cdna_form.h"
#include "kernel/forms/moe_cdna_form.h"
#include "kernel/test_support.h"

namespace foretoken::cdna_forms_test {

using test_support::form_seconds;
using test_support::start_constants;
using test_support::traits_named;

TEST(CdnaForms, a_rate_that_was_reached_is_used_and_others_follow_it) {
  const DeviceTraits mi300x = traits_named("mi300x");
  EXPECT_EQ(saturated_rate(mi300x, Scheme::bf16), 708e12);
  EXPECT_EQ(saturated_rate(mi300x, Scheme::fp8_block), 1038e12);
  DeviceTraits unknown = mi300x;
  for (double& reached : unknown.reached) reached = 0;
  EXPECT_DOUBLE_EQ(saturated_rate(unknown, Scheme::bf16), 0.55 * unknown.peak[static_cast<size_t>(DType::bf16)]);
  unknown.reached[static_cast<size_t>(Scheme::bf16)] = 0.6 * unknown.peak[static_cast<size_t>(DType::bf16)];
  EXPECT_DOUBLE_EQ(saturated_rate(unknown, Scheme::fp8), 0.6 * unknown.peak[static_cast<size_t>(DType::fp8)]);
  EXPECT_LT(saturated_rate(unknown, Scheme::fp8_block), saturated_rate(unknown, Scheme::fp8));
}

TEST(CdnaForms, power_lowers_the_clock_under_load_and_never_raises_it) {
  const DeviceTraits mi300x = traits_named("mi300x"), mi308x = traits_named("mi308x");
  EXPECT_NEAR(loaded_clock(mi300x, DType::fp8), 1230e6, 0.1 * 1230e6) << "AMD's own median under fp8 multiplies";
  EXPECT_LE(loaded_clock(mi308x, DType::bf16), mi308x.clock);
  DeviceTraits ideal = mi300x;
  for (size_t scheme = 0; scheme < scheme_count; ++scheme)
    ideal.reached[scheme] = ideal.peak[static_cast<size_t>(facts(static_cast<Scheme>(scheme)).math)];
  EXPECT_EQ(loaded_clock(ideal, DType::fp8), ideal.clock);
}

TEST(CdnaForms, waves_lie_between_even_shares_and_whole_ones) {
  for (const double tiles : {1.0, 79.0, 80.0, 81.0, 500.0}) {
    const double waves = cdna_waves(tiles, 80, 0.2).waves;
    EXPECT_GE(waves, std::max(1.0, tiles / 80)) << tiles;
    EXPECT_LE(waves, std::ceil(tiles / 80)) << tiles;
  }
  EXPECT_EQ(cdna_waves(81, 80, 1).waves, 2);
}

TEST(CdnaForms, an_engines_call_casts_and_sorts_what_a_measurement_leaves_out) {
  const auto gemm = make_gemm_cdna_form(Caches::benchmark), moe = make_moe_cdna_form(Caches::benchmark);
  const DeviceTraits device = traits_named("mi355x");
  const auto seconds = [&](const Form& form, const KernelShape& shape, const char* variant) {
    return form_seconds(form, {.shape = shape, .variant = variant}, device, start_constants(form));
  };
  const GemmShape narrow{.m = 64, .n = 4096, .k = 4096, .scheme = Scheme::fp8};
  EXPECT_GT(seconds(*gemm, narrow, ""), seconds(*gemm, narrow, "aiter") + 2e-6);
  const GemmShape wide{.m = 64, .n = 4096, .k = 4096, .scheme = Scheme::bf16};
  EXPECT_EQ(seconds(*gemm, wide, ""), seconds(*gemm, wide, "aiter")) << "nothing to cast";
  const MoeShape experts{
      .tokens = 64, .hidden = 4096, .inter = 1536, .top_k = 8, .experts = 128, .scheme = Scheme::fp8_block};
  EXPECT_GT(seconds(*moe, experts, ""), seconds(*moe, experts, "aiter_1stage"));
  EXPECT_GT(seconds(*moe, experts, "aiter_2stages"), seconds(*moe, experts, "aiter_1stage")) << "one launch more";
}

TEST(CdnaForms, the_steps_of_a_lonely_tile_wait_for_one_another) {
  // Tuned int8 kernels on an MI300X, 64 rows by 1,536 columns: one wave at any depth, and the time is that of the
  // steps.
  const auto form = make_gemm_cdna_form(Caches::benchmark);
  const DeviceTraits device = traits_named("mi300x");
  std::vector<double> constants = start_constants(*form);
  const auto seconds = [&](int64_t k) {
    const GemmShape shape{.m = 64, .n = 1536, .k = k, .scheme = Scheme::int8};
    return form_seconds(*form, {.shape = shape, .variant = "aiter"}, device, constants);
  };
  const double with_steps = seconds(5120) - seconds(2560);
  for (size_t k = 0; k < constants.size(); ++k) {
    if (form->constants()[k].name == "step_seconds") constants[k] = form->constants()[k].least;
  }
  const double without = seconds(5120) - seconds(2560);
  EXPECT_GT(with_steps, 1.15 * without);
}

TEST(CdnaForms, tiles_are_those_that_a_formats_kernels_have) {
  const auto form = make_gemm_cdna_form(Caches::benchmark);
  const DeviceTraits device = traits_named("mi355x");
  const std::vector<double> constants = start_constants(*form);
  const auto tile_of = [&](int64_t m, Scheme scheme) {
    const FormCall call{.shape = GemmShape{.m = m, .n = 8192, .k = 8192, .scheme = scheme}, .variant = "aiter"};
    int choice = -1;
    form->seconds(call, device, constants, choice);
    std::pair<double, double> tile;
    for (const Explained& line : form->explain(call, device, constants, choice)) {
      if (line.name == "tile_rows") tile.first = line.value;
      if (line.name == "tile_columns") tile.second = line.value;
    }
    return tile;
  };
  EXPECT_EQ(tile_of(1, Scheme::mxfp4).first, 32) << "the least that fp4 has";
  EXPECT_GE(tile_of(1, Scheme::mxfp4).second, 128);
  EXPECT_EQ(tile_of(16384, Scheme::fp8_block), std::pair(192.0, 256.0)) << "blocks of 128 have no square of 256";
  EXPECT_EQ(tile_of(16384, Scheme::fp8), std::pair(256.0, 256.0));
}

TEST(CdnaForms, cold_caches_are_never_faster_and_a_better_device_is_never_slower) {
  RandomStream random(1, "cdna");
  const auto cold = make_gemm_cdna_form(Caches::cold), warm = make_gemm_cdna_form(Caches::benchmark);
  std::vector<double> constants = start_constants(*warm);
  for (size_t k = 0; k < constants.size(); ++k) {
    if (warm->constants()[k].name == "dram_share_of_peak") constants[k] = 1.3;
  }
  const DeviceTraits device = traits_named("mi300x");
  DeviceTraits better = device;
  better.bandwidth *= 1.5;
  for (double& reached : better.reached)
    reached = std::min(reached * 1.2, better.peak[static_cast<size_t>(DType::fp8)]);
  for (int trial = 0; trial < 300; ++trial) {
    const FormCall call{.shape = GemmShape{.m = int64_t{1} << random.below(15),
                                           .n = int64_t{256} << random.below(7),
                                           .k = int64_t{256} << random.below(7),
                                           .scheme = random.below(2) == 0 ? Scheme::bf16 : Scheme::fp8_block},
                        .variant = "aiter"};
    EXPECT_GE(form_seconds(*cold, call, device, constants), form_seconds(*warm, call, device, constants));
    EXPECT_LE(form_seconds(*warm, call, better, constants), 1.0000001 * form_seconds(*warm, call, device, constants));
  }
}

}  // namespace foretoken::cdna_forms_test
