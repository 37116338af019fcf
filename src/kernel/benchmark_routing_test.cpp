#include "kernel/benchmark_routing.h"

#include <gtest/gtest.h>

#include <array>

#include "kernel/forms/moe_kernels.h"
#include "kernel/test_support.h"
#include "model/work.h"

namespace foretoken::benchmark_routing_test {

ExpertLoad swept_load(int64_t tokens, int64_t ranks) {
  MoeShape shape = test_support::deepseek_experts(tokens, ranks);
  route_as_benchmarked(shape, "fi_cutlass");
  return expert_load(shape);
}

TEST(BenchmarkRouting, gives_the_first_rank_half_of_each_tokens_choices_and_its_part_of_the_others) {
  // A turn of a tied expert falls to the other 124 and not to its own group alone: up to 0.12 pairs fewer.
  for (const int64_t ranks : {2, 4, 8, 16}) {
    EXPECT_NEAR(swept_load(4096, ranks).pairs / 4096, 4 + 8.0 / static_cast<double>(ranks), 0.12) << ranks;
  }
  EXPECT_NEAR(swept_load(4096, 64).pairs, 4 * 4096, 1) << "only experts that every token chooses";
  EXPECT_NEAR(swept_load(4096, 256).pairs, 4096, 1);
}

// H100, one rank: 32 tokens took 1.96 ms, in which it reads half of the experts' 11.3 GB.
TEST(BenchmarkRouting, leaves_half_of_the_experts_without_tokens) {
  EXPECT_NEAR(swept_load(1, 1).active_experts, 8, 0.1);
  EXPECT_NEAR(swept_load(64, 1).active_experts, 128, 0.1);
  EXPECT_NEAR(swept_load(16384, 1).active_experts, 128, 0.1);
  EXPECT_NEAR(swept_load(16384, 1).pairs, 8 * 16384, 1);
}

TEST(BenchmarkRouting, fills_tiles_of_busy_experts_with_all_tokens) {
  MoeShape shape = test_support::deepseek_experts(3072, 8);
  route_as_benchmarked(shape, "fi_cutlass");
  const DeviceTraits hopper = test_support::traits_named("h100_sxm");
  const ExpertGroups groups = expert_groups(shape, moe_kernel("fi_cutlass", shape, hopper));
  EXPECT_NEAR(groups.tiles(128), 4 * 24 + 28, 0.5) << "28 experts have 99 tokens each";
}

// The benchmark's own generator, sampled 40 times with 1024 tokens and routed: 2.74 pairs of each token on one of 8
// ranks (1.59 before the router), 1.71 on one of 64 (0.59), and 222 experts in use on one rank (247).
TEST(BenchmarkRouting, hands_what_a_power_law_loses_to_the_first_experts_of_the_first_rank) {
  const auto load = [](int64_t ranks) {
    MoeShape shape = test_support::deepseek_experts(1024, ranks);
    shape.routing = Routing::power_law;
    shape.power_law_exponent = 1.2;
    const double labeled = expert_load(shape).pairs / 1024;
    route_as_benchmarked(shape, "fi_cutlass");
    const ExpertLoad routed = expert_load(shape);
    return std::array{labeled, routed.pairs / 1024, routed.active_experts};
  };
  EXPECT_NEAR(load(1)[1], 8, 1e-6);
  EXPECT_NEAR(load(1)[2], 222, 11);
  EXPECT_NEAR(load(8)[1], 2.74, 0.2);
  EXPECT_GT(load(8)[1], 1.5 * load(8)[0]);
  EXPECT_NEAR(load(8)[2], 31, 1);
  EXPECT_NEAR(load(64)[1], 1.71, 0.2);
  EXPECT_GT(load(64)[1], 2 * load(64)[0]);
}

TEST(BenchmarkRouting, of_a_power_law_has_the_same_pairs_in_its_groups) {
  MoeShape shape = test_support::deepseek_experts(4096, 8);
  shape.routing = Routing::power_law;
  shape.power_law_exponent = 1.2;
  route_as_benchmarked(shape, "fi_cutlass");
  const DeviceTraits hopper = test_support::traits_named("h100_sxm");
  const ExpertGroups groups = expert_groups(shape, moe_kernel("fi_cutlass", shape, hopper));
  double pairs = groups.busy * groups.busy_size;
  for (int i = 0; i < groups.count; ++i) pairs += groups.experts * groups.size[i];
  EXPECT_NEAR(pairs, groups.pairs, 0.01 * groups.pairs);
  EXPECT_GT(groups.size[0], 4 * groups.size[ExpertGroups::most - 1]) << "the busiest experts come first";
}

TEST(BenchmarkRouting, is_that_of_vllms_rows_of_deepseek_v3_alone) {
  const auto routing = [](MoeShape shape, const char* kernel) {
    route_as_benchmarked(shape, kernel);
    return shape.routing;
  };
  EXPECT_EQ(routing(test_support::deepseek_experts(64, 8), "triton"), Routing::measured);
  EXPECT_EQ(routing(test_support::deepseek_experts(64, 8), "triton_sglang"), Routing::balanced);
  EXPECT_EQ(routing(test_support::deepseek_experts(64, 8), "deepgemm_masked"), Routing::balanced);
  EXPECT_EQ(routing(test_support::deepseek_experts(64, 8), ""), Routing::balanced) << "nobody says what was timed";
  MoeShape skewed = test_support::deepseek_experts(64, 8), kimi = test_support::deepseek_experts(64, 8);
  skewed.routing = Routing::power_law;
  skewed.power_law_exponent = 1.2;
  kimi.experts = 384;
  EXPECT_EQ(routing(skewed, "triton"), Routing::measured);
  EXPECT_EQ(routing(skewed, "triton_sglang"), Routing::power_law);
  EXPECT_EQ(routing(kimi, "triton"), Routing::balanced);
}

}  // namespace foretoken::benchmark_routing_test
