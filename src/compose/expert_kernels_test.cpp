#include "compose/expert_kernels.h"

#include <gtest/gtest.h>

#include "hardware/catalogue.h"
#include "kernel/learned.h"

namespace foretoken::compose_expert_kernels_test {

const std::filesystem::path data = FORETOKEN_SOURCE_DIR "/data";

TEST(ExpertKernels, an_engine_that_tunes_runs_plain_scales_no_slower_than_blocks_of_them) {
  const Device device = HardwareCatalogue(data / "hardware").device("h100_sxm");
  const KernelPredictor kernels(device, {},
                                std::make_shared<LearnedKernels>(device, data / "kernels" / "calibrations"));
  for (const int64_t tokens : {8, 256, 4096}) {
    MoeShape shape{.tokens = tokens, .hidden = 4096, .inter = 14336, .top_k = 2, .experts = 8, .scheme = Scheme::fp8};
    const double measured = kernels.estimate(shape).seconds.value;
    EXPECT_EQ(expert_estimate(shape, {}, kernels, {}).seconds.value, measured);
    const double tuned = expert_estimate(shape, {}, kernels, {.tuned_experts = true}).seconds.value;
    EXPECT_LE(tuned, measured);
    shape.scheme = Scheme::fp8_block;
    EXPECT_LE(tuned, kernels.estimate(shape).seconds.value);
    EXPECT_EQ(expert_estimate(shape, {}, kernels, {.tuned_experts = true}).seconds.value,
              kernels.estimate(shape).seconds.value)
        << "only plain scales gain";
  }
}

}  // namespace foretoken::compose_expert_kernels_test
