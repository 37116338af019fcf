#include "kernel/variants.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kernel/test_support.h"

namespace foretoken::variants_test {

using namespace test_support;
using testing::Contains;
using testing::HasSubstr;
using testing::Not;

const std::filesystem::path calibrations = FORETOKEN_SOURCE_DIR "/data/kernels/calibrations";

std::vector<std::string> known(const char* family) {
  return known_variants(kernel_family(family, {}), calibrations);
}
std::string typed(const char* family, const char* variant) {
  return variant_from_flag(kernel_family(family, {}), variant, calibrations);
}

TEST(Variants, are_those_of_the_form_and_those_that_were_measured) {
  EXPECT_THAT(known("gemm"), Contains("torch_linear"));
  EXPECT_THAT(known("gemm"), Contains("deepgemm")) << "told apart, not measured";
  EXPECT_THAT(known("mla_bmm"), Contains("fp8_block_scaling")) << "measured, not told apart";
  EXPECT_THAT(known("moe"), Contains("fi_cutlass"));
  EXPECT_THAT(known("attention_prefill"), Contains("fa3"));
}

TEST(Variants, of_families_that_share_a_form_are_kept_apart) {
  EXPECT_THAT(known("norm"), Contains("torch_eager"));
  EXPECT_THAT(known("norm"), Not(Contains("torch_argmax")));
  EXPECT_THAT(known("sampling"), Contains("torch_argmax"));
  EXPECT_THAT(known("sampling"), Not(Contains("torch_softmax")));
}

TEST(Variants, never_contain_a_number_format) {
  for (const KernelFamily& family : kernel_families()) {
    for (const std::string& name : known_variants(family, calibrations)) {
      EXPECT_FALSE(dtype_from_name(name)) << family.name << " " << name;
      EXPECT_THAT(name, Not(HasSubstr(" "))) << family.name;
    }
  }
}

TEST(Variants, a_name_is_taken_in_any_case_and_any_means_none) {
  EXPECT_EQ(typed("gemm", "Torch_Linear"), "torch_linear");
  EXPECT_EQ(typed("gemm", "any"), "");
  EXPECT_EQ(typed("gemm", ""), "");
}

TEST(Variants, an_unknown_name_is_refused_with_the_nearest) {
  const InputProblem problem = problem_of([] { typed("attention_prefill", "fa33"); });
  EXPECT_EQ(problem.field, "kernel");
  EXPECT_EQ(problem.value, "fa33");
  EXPECT_EQ(problem.suggestion, "fa3");
  EXPECT_THAT(problem.expected, HasSubstr("triton_attn"));
}

TEST(Variants, a_folder_without_sweeps_leaves_those_of_the_form) {
  const KernelFamily& gemm = kernel_family("gemm", {});
  EXPECT_THAT(known_variants(gemm, "/nonexistent"), Contains("cutlass_fp8"));
}

}  // namespace foretoken::variants_test
