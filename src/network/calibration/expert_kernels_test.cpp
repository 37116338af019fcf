#include "network/calibration/expert_kernels.h"

#include <gtest/gtest.h>

#include "network/calibration/law.h"

namespace foretoken::calibration_expert_kernels_test {

TEST(ExpertKernels, every_kernel_has_a_law_and_calls_both_ways) {
  for (const ExpertKernel& kernel : all_expert_kernels()) {
    EXPECT_NE(find_law(kernel.law), nullptr) << kernel.name;
    ASSERT_FALSE(kernel.dispatch_dtypes.empty());
    for (const ExpertDirection direction : {ExpertDirection::dispatch, ExpertDirection::combine}) {
      const auto calls = expert_calls(kernel, direction, kernel.dispatch_dtypes.front(), 8, 1, {.tokens = 128});
      ASSERT_FALSE(calls.empty());
      EXPECT_EQ(calls.back().law, kernel.law);
      EXPECT_GT(calls.back().expert.bytes_per_value, 0);
      EXPECT_EQ(calls.back().expert.processors > 0, kernel.takes_processors) << kernel.name;
    }
  }
  EXPECT_EQ(find_expert_kernel("deepep"), nullptr);
}

TEST(ExpertKernels, tensorrt_llm_prepares_a_dispatch_and_sends_fewer_bytes_in_smaller_formats) {
  const ExpertKernel& kernel = *find_expert_kernel("trtllm");
  double before = 3;
  for (const char* dtype : {"bf16", "fp8", "nvfp4"}) {
    const auto calls = expert_calls(kernel, ExpertDirection::dispatch, dtype, 8, 2, {.tokens = 128});
    ASSERT_EQ(calls.size(), 2u);
    EXPECT_LT(calls.back().expert.bytes_per_value, before);
    before = calls.back().expert.bytes_per_value;
  }
}

}  // namespace foretoken::calibration_expert_kernels_test
