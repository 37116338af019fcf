#include "kernel/forms/moe_kernels.h"

#include <gtest/gtest.h>

#include "hardware/catalogue.h"
#include "kernel/kernel.h"
#include "kernel/learned.h"
#include "kernel/test_support.h"

namespace foretoken::moe_kernels_test {

const std::filesystem::path data = FORETOKEN_SOURCE_DIR "/data";

// DeepSeek-V3's experts over so many ranks.
MoeShape experts(int64_t tokens, int64_t ranks) {
  return {.tokens = tokens,
          .hidden = 7168,
          .inter = 2048,
          .top_k = 8,
          .experts = 256,
          .ep = ranks,
          .scheme = Scheme::fp8_block,
          .received = ranks > 1};
}

// The H200, on which these kernels were measured, lends to its siblings.
KernelPredictor predictor(const std::string& name) {
  const HardwareCatalogue hardware(data / "hardware");
  const Device device = hardware.device(name);
  return KernelPredictor(device, {},
                         std::make_shared<LearnedKernels>(device, data / "kernels" / "calibrations", Caches::cold,
                                                          std::vector<Device>{device, hardware.device("h200_sxm")}));
}

TEST(MoeKernel, of_mxfp4_checkpoints_is_the_one_that_engines_choose_by_generation) {
  MoeShape gpt_oss{.tokens = 64, .hidden = 2880, .inter = 2880, .top_k = 4, .experts = 128, .scheme = Scheme::mxfp4_wo};
  const auto usual = [&](const char* device) {
    return moe_kernel({}, gpt_oss, test_support::traits_named(device)).name;
  };
  EXPECT_EQ(usual("h100_sxm"), "oai_triton");
  EXPECT_EQ(usual("h200_sxm"), "oai_triton");
  EXPECT_EQ(usual("b200_sxm"), "fi_trtllm_mono");
  EXPECT_EQ(usual("a100_sxm"), "marlin");
  EXPECT_EQ(usual("rtx_4090"), "marlin");
  gpt_oss.scheme = Scheme::int4_wo;
  EXPECT_EQ(usual("h100_sxm"), "marlin");
}

TEST(KernelOfReceived, is_deepgemm_where_other_kernels_would_walk_all_tokens) {
  const DeviceTraits hopper = test_support::traits_named("h100_sxm"),
                     blackwell = test_support::traits_named("b200_sxm"),
                     ampere = test_support::traits_named("a100_sxm");
  EXPECT_EQ(kernel_of_received(experts(64 * 128, 64), hopper), "deepgemm_masked");
  EXPECT_EQ(kernel_of_received(experts(64 * 4096, 64), hopper), "deepgemm_contiguous");
  EXPECT_EQ(kernel_of_received(experts(64 * 4096, 64), blackwell), "") << "its kernels do not walk";
  EXPECT_EQ(kernel_of_received(experts(64 * 4096, 64), ampere), "") << "DeepGEMM needs asynchronous multiplies";
  EXPECT_EQ(kernel_of_received(experts(4096, 1), hopper), "") << "nothing was sent";
  MoeShape four_bits = experts(64 * 128, 64);
  four_bits.scheme = Scheme::int4_wo;
  EXPECT_EQ(kernel_of_received(four_bits, hopper), "");
}

TEST(KernelOfReceived, takes_less_time_the_more_ranks_share_the_experts) {
  const KernelPredictor kernels = predictor("h200_sxm");
  const auto seconds = [&](int64_t ranks) { return kernels.estimate(experts(262144, ranks)).seconds.value; };
  for (const int64_t ranks : {8, 16, 32, 64}) EXPECT_NEAR(seconds(2 * ranks) / seconds(ranks), 0.5, 0.05) << ranks;
}

// The trace of a training run with EP64 on H800 (profile-data of DeepSeek): grouped multiplies of 32,768 routed tokens
// took 1.43 ms on average on the 112 processors that the exchange left free.
TEST(KernelOfReceived, is_near_the_grouped_multiplies_of_a_published_trace) {
  MoeShape rank = experts(262144, 64);
  rank.routing = Routing::balanced;
  const KernelEstimate both = predictor("h800_sxm").estimate(rank);
  const double all_processors = 2 * 1.43e-3 * 112 / 132;
  EXPECT_NEAR(both.seconds.value / all_processors, 1, 0.15);
  EXPECT_LT(both.seconds.low, all_processors);
  EXPECT_GT(both.seconds.high, all_processors);
}

TEST(KernelOfReceived, named_kernels_decide_for_themselves) {
  const KernelPredictor kernels = predictor("h100_sxm");
  MoeShape sent = experts(16384, 8), walked = sent;
  walked.received = false;
  EXPECT_EQ(kernels.estimate(sent, "triton").seconds.value, kernels.estimate(walked, "triton").seconds.value);
  EXPECT_LT(kernels.estimate(sent).seconds.value, 0.3 * kernels.estimate(walked).seconds.value);
}

TEST(MoeKernels, hopper_hands_blocks_of_fp8_on_several_ranks_to_flashinfer) {
  MoeShape walked = experts(4096, 8);
  walked.received = false;
  const DeviceTraits hopper = test_support::traits_named("h100_sxm"), ada = test_support::traits_named("l40s");
  EXPECT_EQ(moe_kernel({}, walked, hopper).name, "fi_cutlass");
  EXPECT_EQ(moe_kernel({}, walked, ada).name, "triton");
  EXPECT_EQ(moe_kernel("triton", walked, hopper).name, "triton");
  walked.ep = 1;
  EXPECT_EQ(moe_kernel({}, walked, hopper).name, "triton");
  // Both boards were swept so, the H100 at 2.67 ms.
  walked.ep = 8;
  walked.tokens = 3072;
  walked.routing = Routing::balanced;
  for (const char* name : {"h100_sxm", "h200_sxm"}) {
    const KernelEstimate found = predictor(name).estimate(walked);
    EXPECT_EQ(found.tier, Tier::measured) << name;
    EXPECT_TRUE(found.inside_envelope) << name;
  }
  EXPECT_NEAR(predictor("h100_sxm").estimate(walked).seconds.value * 1e3, 2.67, 0.4);
}

}  // namespace foretoken::moe_kernels_test
