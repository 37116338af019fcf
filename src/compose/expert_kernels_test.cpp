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

TEST(ExpertKernels, triton_is_for_tokens_of_all_ranks_in_plain_formats) {
  const Device device = HardwareCatalogue(data / "hardware").device("h200_sxm");
  const KernelPredictor kernels(device, {},
                                std::make_shared<LearnedKernels>(device, data / "kernels" / "calibrations"));
  MoeShape shape{.tokens = 8192, .hidden = 4096, .inter = 1024, .top_k = 8, .experts = 256, .ep = 8};
  const auto named = [&] { return expert_estimate(shape, "triton", kernels, {}).seconds.value; };
  const auto usual = [&] { return expert_estimate(shape, {}, kernels, {}).seconds.value; };
  shape.scheme = Scheme::fp8_block;
  EXPECT_GT(named(), 1.2 * usual()) << "it walks the tokens of all ranks";
  shape.received = true;
  EXPECT_EQ(named(), usual());
  shape.received = false;
  shape.scheme = Scheme::int4_wo;
  EXPECT_EQ(named(), usual());
}

}  // namespace foretoken::compose_expert_kernels_test
