#include "compose/linear_kernels.h"

#include <gtest/gtest.h>

#include "hardware/catalogue.h"
#include "kernel/learned.h"

namespace foretoken::linear_kernels_test {

const std::filesystem::path data = FORETOKEN_SOURCE_DIR "/data";

KernelPredictor b200() {
  const Device device = HardwareCatalogue(data / "hardware").device("b200_sxm");
  return KernelPredictor(device, {}, std::make_shared<LearnedKernels>(device, data / "kernels" / "calibrations"));
}

double seconds(const KernelPredictor& kernels, const GemmShape& shape, bool tuned) {
  return linear_estimate(shape, {}, kernels, {.tuned_linears = tuned}).seconds.value;
}

TEST(LinearKernels, other_stacks_run_what_was_measured) {
  const KernelPredictor kernels = b200();
  for (const int64_t rows : {1, 100, 4000}) {
    const GemmShape shape{.m = rows, .n = 10240, .k = 8192, .scheme = Scheme::fp8};
    EXPECT_EQ(seconds(kernels, shape, false), kernels.estimate(shape).seconds.value);
  }
}

TEST(LinearKernels, a_few_rows_never_take_longer_than_more) {
  const KernelPredictor kernels = b200();
  for (const Scheme scheme : {Scheme::bf16, Scheme::fp8, Scheme::nvfp4}) {
    double last = 0;
    for (int64_t rows = 4; rows <= 256; rows *= 2) {
      const double now = seconds(kernels, {.m = rows, .n = 10240, .k = 8192, .scheme = scheme}, true);
      EXPECT_GE(now, last) << rows;
      last = now;
    }
  }
}

TEST(LinearKernels, only_known_scales_save_the_cast_and_at_most_half_of_the_time) {
  const KernelPredictor kernels = b200();
  for (const Scheme scheme : {Scheme::bf16, Scheme::fp8_block, Scheme::fp8, Scheme::nvfp4}) {
    const GemmShape shape{.m = 1024, .n = 10240, .k = 8192, .scheme = scheme};
    const double measured = kernels.estimate(shape).seconds.value, run = seconds(kernels, shape, true);
    if (scheme == Scheme::fp8 || scheme == Scheme::nvfp4) {
      EXPECT_LT(run, measured);
      EXPECT_GE(run, measured / 2);
    } else {
      EXPECT_EQ(run, measured);
    }
  }
}

}  // namespace foretoken::linear_kernels_test
