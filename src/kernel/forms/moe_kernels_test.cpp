#include "kernel/forms/moe_kernels.h"

#include <gtest/gtest.h>

#include "hardware/catalogue.h"
#include "kernel/benchmark_routing.h"
#include "kernel/kernel.h"
#include "kernel/learned.h"
#include "kernel/test_support.h"
#include "model/expert_popularity.h"

namespace foretoken::moe_kernels_test {

const std::filesystem::path data = FORETOKEN_SOURCE_DIR "/data";

// DeepSeek-V3's experts over so many ranks.
MoeShape experts(int64_t tokens, int64_t ranks) {
  MoeShape shape = test_support::deepseek_experts(tokens, ranks);
  shape.received = ranks > 1;
  return shape;
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

TEST(MoeKernel, of_cutlass_in_fp8_walks_narrow_tiles_on_hopper_alone) {
  MoeShape shape = experts(256, 1);
  shape.scheme = Scheme::fp8;
  const auto columns = [&](const char* device) {
    return moe_kernel("fi_cutlass", shape, test_support::traits_named(device)).most_columns;
  };
  EXPECT_EQ(columns("h100_sxm"), 16);
  EXPECT_EQ(columns("b200_sxm"), 256);
  EXPECT_EQ(columns("rtx_pro_6000_server"), 256);
  shape.scheme = Scheme::fp8_block;
  EXPECT_EQ(columns("h100_sxm"), 256) << "blocks of fp8 have kernels of their own";
}

TEST(MoeForm, narrow_tiles_take_as_long_for_one_token_as_for_a_whole_tile) {
  const std::unique_ptr<Form> form = test_support::form_named("moe").make(Caches::benchmark);
  const std::vector<double> constants = test_support::start_constants(*form);
  const auto seconds = [&](const char* variant, int64_t tokens) {
    MoeShape shape = experts(tokens, 1);
    shape.scheme = Scheme::fp8;
    return test_support::form_seconds(*form, {.shape = shape, .variant = variant},
                                      test_support::traits_named("h100_sxm"), constants);
  };
  EXPECT_NEAR(seconds("fi_cutlass", 4096) / seconds("fi_cutlass", 32), 1, 0.1) << "128 tokens of each expert, and one";
  EXPECT_GT(seconds("fi_cutlass", 32), 3 * seconds("triton", 32)) << "weights come at a fraction of the bandwidth";
}

TEST(MoeForm, kernels_that_activate_while_they_store_move_less_around_the_multiplies) {
  const std::unique_ptr<Form> form = test_support::form_named("moe").make(Caches::benchmark);
  const std::vector<double> constants = test_support::start_constants(*form);
  const DeviceTraits blackwell = test_support::traits_named("b200_sxm");
  const auto stages = [&](const char* variant, Scheme scheme) {
    MoeShape shape = experts(16384, 1);
    shape.scheme = scheme;
    const FormCall call{.shape = shape, .variant = variant};
    int choice = -1;
    form->seconds(call, blackwell, constants, choice);
    for (const Explained& line : form->explain(call, blackwell, constants, choice)) {
      if (line.name == "permute_and_reduce") return line.value;
    }
    return 0.0;
  };
  EXPECT_LT(stages("fi_trtllm_mono", Scheme::fp8), 0.5 * stages("fi_cutlass", Scheme::fp8));
  EXPECT_EQ(stages("fi_trtllm_mono", Scheme::fp8_block), stages("fi_cutlass", Scheme::fp8_block));
}

TEST(ExpertGroups, of_a_popularity_hold_every_pair_and_the_busiest_experts_first) {
  MoeShape shape = experts(512, 1);
  shape.routing = Routing::measured;
  shape.popularity = power_law_popularity(shape.experts, 1.2);
  const ExpertGroups groups = expert_groups(shape, moe_kernel("triton", shape, test_support::traits_named("h100_sxm")));
  double pairs = 0;
  for (const double size : groups.size) pairs += size * groups.experts;
  EXPECT_NEAR(pairs, 512.0 * 8, 1);
  for (int i = 1; i < ExpertGroups::most; ++i) EXPECT_LT(groups.size[i], groups.size[i - 1]);
  EXPECT_GT(groups.size[0], 4 * groups.size[ExpertGroups::most - 1]);
}

TEST(KernelOfReceived, is_deepgemm_on_the_generations_that_it_has_kernels_for) {
  const DeviceTraits hopper = test_support::traits_named("h100_sxm"),
                     blackwell = test_support::traits_named("b200_sxm"),
                     ampere = test_support::traits_named("a100_sxm");
  EXPECT_EQ(kernel_of_received(experts(64 * 128, 64), hopper), "deepgemm_masked");
  EXPECT_EQ(kernel_of_received(experts(64 * 4096, 64), hopper), "deepgemm_contiguous");
  EXPECT_EQ(kernel_of_received(experts(64 * 4096, 64), blackwell), "deepgemm_contiguous");
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
  // For 16,384 pairs DeepGEMM took 1.25 ms on an H200. There, the kernel that walks all tokens took 2.38 ms for as many
  // of the 40,960 pairs that the benchmark's router gave to it (8,192 tokens, ep 8).
  EXPECT_LT(kernels.estimate(sent).seconds.value, 0.5 * kernels.estimate(walked).seconds.value);
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
  // Both boards were swept so, the H100 at 2.67 ms, with the experts that the benchmark's router chose.
  walked.ep = 8;
  walked.tokens = 3072;
  walked.routing = Routing::balanced;
  MoeShape even = walked;
  route_as_benchmarked(walked, "fi_cutlass");
  for (const char* name : {"h100_sxm", "h200_sxm"}) {
    const KernelEstimate found = predictor(name).estimate(walked);
    EXPECT_EQ(found.tier, Tier::measured) << name;
    EXPECT_TRUE(found.inside_envelope) << name;
  }
  EXPECT_NEAR(predictor("h100_sxm").estimate(walked).seconds.value * 1e3, 2.67, 0.4);
  EXPECT_LT(predictor("h100_sxm").estimate(even).seconds.value * 1e3, 1.66)
      << "the busiest rank of a power law took so long";
}

}  // namespace foretoken::moe_kernels_test
