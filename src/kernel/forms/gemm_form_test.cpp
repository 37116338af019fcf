#include "kernel/forms/gemm_form.h"

#include <gtest/gtest.h>

#include "base/random.h"
#include "kernel/forms/gemm_tiles.h"
#include "kernel/forms/matmul_tile.h"
#include "kernel/test_support.h"

namespace foretoken::gemm_form_test {

using test_support::form_seconds;
using test_support::start_constants;
using test_support::traits_named;

GemmShape random_shape(RandomStream& random, Scheme scheme) {
  const auto size = [&](int64_t least) { return least << random.below(6); };
  return {.m = int64_t{1} << random.below(14), .n = size(256), .k = size(256), .scheme = scheme};
}

TEST(GemmForm, a_multiply_whose_input_arrives_quantized_is_faster_than_one_that_quantizes) {
  const auto form = make_gemm_form(Caches::cold);
  const std::vector<double> constants = start_constants(*form);
  RandomStream random(1, "gemm");
  for (int trial = 0; trial < 200; ++trial) {
    const GemmShape shape = random_shape(random, Scheme::fp8);
    const auto seconds = [&](const char* variant) {
      return form_seconds(*form, {.shape = shape, .variant = variant}, traits_named("h200_sxm"), constants);
    };
    EXPECT_LT(seconds("scaled_mm_tensor"), seconds("trtllm"));
    EXPECT_LE(seconds("scaled_mm_tensor"), seconds("scaled_mm_row")) << "it may split k besides";
  }
}

TEST(GemmForm, fp4_on_graphics_blackwell_has_one_tile_for_any_number_of_rows) {
  const GpuGeneration& generation = *test_support::traits_named("rtx_pro_6000_server").generation;
  const auto tile = [&](int64_t m) {
    return gemm_dispatch(GemmKernel::cutlass, {.m = m, .n = 4096, .k = 4096, .scheme = Scheme::nvfp4}, generation).tile;
  };
  EXPECT_EQ(tile(257), tile(256));
  EXPECT_EQ(tile(16384), tile(1));
  EXPECT_GE(tile(1), 0) << "not the fastest of many";
}

TEST(GemmForm, pairs_of_processors_share_the_fp8_tiles_of_data_center_blackwell) {
  const GpuGeneration& generation = *traits_named("b200_sxm").generation;
  const auto tile = [&](int64_t m) {
    return gemm_dispatch(GemmKernel::cutlass, {.m = m, .n = 4096, .k = 8192, .scheme = Scheme::fp8}, generation).tile;
  };
  EXPECT_EQ(tile(16), matmul_tile_index({32, 64}));
  EXPECT_EQ(tile(64), matmul_tile_index({64, 64}));
  EXPECT_EQ(tile(65), matmul_tile_index({64, 128}));
  EXPECT_EQ(tile(256), matmul_tile_index({64, 128}));
  EXPECT_EQ(tile(257), matmul_tile_index({128, 128}));
}

TEST(GemmForm, measurements_with_cold_caches_are_posed_as_such) {
  const auto cold = make_gemm_form(Caches::cold), warm = make_gemm_form(Caches::benchmark);
  const std::vector<double> constants = start_constants(*cold);
  RandomStream random(2, "gemm");
  for (int trial = 0; trial < 200; ++trial) {
    const GemmShape shape = random_shape(random, Scheme::bf16);
    const auto seconds = [&](const Form& form, const char* variant) {
      return form_seconds(form, {.shape = shape, .variant = variant}, traits_named("h200_sxm"), constants);
    };
    EXPECT_EQ(seconds(*warm, "torch_linear_cold"), seconds(*cold, "torch_linear"));
    EXPECT_EQ(seconds(*cold, "torch_linear_cold"), seconds(*cold, "torch_linear"));
  }
}

TEST(GemmForm, cold_calls_look_for_cold_measurements_of_the_same_kernel) {
  const auto cold = make_gemm_form(Caches::cold), warm = make_gemm_form(Caches::benchmark);
  const FormCall linear{.shape = GemmShape{}, .variant = "torch_linear"}, unknown{.shape = GemmShape{}, .variant = ""};
  EXPECT_EQ(cold->measured_as(linear), "torch_linear_cold");
  EXPECT_EQ(cold->measured_as({.shape = GemmShape{}, .variant = "torch_linear_cold"}), "torch_linear_cold");
  EXPECT_EQ(warm->measured_as(linear), "torch_linear");
  EXPECT_EQ(cold->measured_as(unknown), "") << "an engine's own kernel was measured warm";
}

// bf16 on an H200, cold caches; some of these rows are among those that the constants were read off.
TEST(GemmForm, rows_that_do_not_start_on_16_bytes_are_slower) {
  struct Measured {
    int64_t m, n, k;
    double us;
  };
  constexpr Measured rows[] = {{8192, 16001, 385, 924.7},   {427, 3651, 14209, 444.9},  {4096, 12289, 28674, 22717},
                               {1024, 8707, 12932, 2151},   {31, 55299, 5120, 587.5},   {2590, 57346, 8198, 9422},
                               {1116, 4098, 32768, 1151.1}, {16, 32770, 32768, 662.8},  {3910, 16516, 772, 500.6},
                               {2048, 6916, 5120, 578.9},   {16384, 7168, 8195, 13998}, {2048, 7168, 16390, 1854.5},
                               {1, 36864, 7172, 176.8},     {1, 27652, 5121, 98.5}};
  const auto form = make_gemm_form(Caches::cold);
  const std::vector<double> constants = start_constants(*form);
  for (const auto& [m, n, k, us] : rows) {
    const FormCall call{.shape = GemmShape{.m = m, .n = n, .k = k}, .variant = "torch_linear"};
    const double seconds = form_seconds(*form, call, traits_named("h200_sxm"), constants);
    EXPECT_NEAR(std::log(seconds * 1e6 / us), 0, assumed_half_width(call)) << m << " " << n << " " << k;
    const FormCall aligned{.shape = GemmShape{.m = m, .n = (n + 7) / 8 * 8, .k = (k + 7) / 8 * 8},
                           .variant = "torch_linear"};
    EXPECT_EQ(assumed_half_width(aligned), 0);
    EXPECT_LE(form_seconds(*form, aligned, traits_named("h200_sxm"), constants), 1.02 * seconds);
  }
}

}  // namespace foretoken::gemm_form_test
