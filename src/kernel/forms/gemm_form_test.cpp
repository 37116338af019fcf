#include "kernel/forms/gemm_form.h"

#include <gtest/gtest.h>

#include "base/random.h"
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

}  // namespace foretoken::gemm_form_test
