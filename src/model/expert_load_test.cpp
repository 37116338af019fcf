#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "model/expert_popularity.h"
#include "model/work.h"

namespace foretoken::expert_load_test {

MoeShape layer(int64_t tokens, int64_t top_k, int64_t experts, int64_t ep, double exponent) {
  return {.tokens = tokens,
          .hidden = 64,
          .inter = 64,
          .top_k = top_k,
          .experts = experts,
          .ep = ep,
          .routing = exponent > 0 ? Routing::power_law : Routing::balanced,
          .power_law_exponent = exponent};
}

TEST(ExpertLoad, balanced_routing_agrees_with_walking_through_the_tokens) {
  for (const int64_t experts : {8, 60, 128}) {
    for (const int64_t top_k : {1, 2, 6, 8}) {
      for (const int64_t ep : {1, 2, 4}) {
        for (const int64_t tokens : {1, 2, 7, 16, 31, 200}) {
          const int64_t stride = (experts + top_k - 1) / top_k;
          std::set<int64_t> active;
          double pairs = 0;
          for (int64_t token = 0; token < tokens; ++token) {
            for (int64_t slot = 0; slot < top_k; ++slot) {
              const int64_t spread = tokens < stride ? token * stride / tokens : token;
              const int64_t expert = (spread + slot * stride) % experts;
              if (expert >= experts / ep) continue;
              active.insert(expert);
              pairs += 1;
            }
          }
          const ExpertLoad load = expert_load(layer(tokens, top_k, experts, ep, 0));
          EXPECT_EQ(load.pairs, pairs) << experts << " " << top_k << " " << ep << " " << tokens;
          EXPECT_EQ(load.active_experts, static_cast<double>(active.size()));
        }
      }
    }
  }
}

TEST(ExpertLoad, without_expert_parallelism_no_pair_is_lost) {
  for (const double exponent : {0.0, 1.01, 1.2}) {
    for (const int64_t tokens : {1, 3, 16, 1000, 65536}) {
      EXPECT_EQ(expert_load(layer(tokens, 8, 256, 1, exponent)).pairs, static_cast<double>(8 * tokens));
    }
  }
}

TEST(ExpertLoad, by_chance_fewer_experts_wake_than_evenly_and_the_fullest_rank_has_more_than_its_share) {
  for (const int64_t tokens : {1, 4, 32, 256, 4096}) {
    for (const int64_t ep : {1, 4, 16}) {
      const ExpertLoad even = expert_load(layer(tokens, 8, 256, ep, 0));
      MoeShape shape = layer(tokens, 8, 256, ep, 0);
      shape.routing = Routing::random;
      const ExpertLoad chance = expert_load(shape);
      const double expected = 256.0 / static_cast<double>(ep) * (1 - std::pow(1 - 8.0 / 256, tokens));
      EXPECT_NEAR(chance.active_experts, expected, 1e-9 * expected);
      const double share = 8.0 * static_cast<double>(tokens) / static_cast<double>(ep);
      EXPECT_GE(chance.pairs, share);
      EXPECT_LE(chance.pairs, 8.0 * static_cast<double>(tokens));
      if (ep > 1) continue;
      EXPECT_LE(chance.active_experts, even.active_experts + 1e-9);
      EXPECT_EQ(chance.pairs, share) << "one rank has them all";
    }
  }
}

TEST(ExpertLoad, a_power_law_wakes_fewer_experts_and_loads_one_rank_more) {
  for (const int64_t tokens : {16, 256, 4096}) {
    const ExpertLoad even = expert_load(layer(tokens, 8, 128, 8, 0));
    const ExpertLoad skewed = expert_load(layer(tokens, 8, 128, 8, 1.2));
    EXPECT_GE(skewed.pairs, even.pairs);
    EXPECT_LE(skewed.active_experts, even.active_experts);
  }
}

// For 128 experts, top 8 and exponent 1.2, random draws of this power law wake 54 experts with 16 tokens, and the
// busiest of eight ranks carries 2.1 times its share (measured: 1.9 to 2.1). Mid-quantiles lack the far tail of random
// draws, so the busiest rank comes out lighter, at 1.8.
TEST(ExpertLoad, power_law_statistics_are_near_those_of_sampled_routings) {
  EXPECT_NEAR(expert_load(layer(16, 8, 128, 1, 1.2)).active_experts, 54, 3);
  const double share = 4096.0 * 8 / 8;
  EXPECT_NEAR(expert_load(layer(4096, 8, 128, 8, 1.2)).pairs / share, 2.0, 0.25);
}

// The busiest rank is set by chance where tokens are few and by popularity where they are many, without a step between.
TEST(ExpertLoad, of_scattered_experts_grows_smoothly_with_the_tokens) {
  const auto load = [](int64_t tokens, bool popular) {
    MoeShape shape = layer(tokens, 8, 128, 8, 0);
    shape.routing = popular ? Routing::measured : Routing::random;
    shape.popularity = popular ? power_law_popularity(128, 1.2) : nullptr;
    return expert_load(shape);
  };
  for (int64_t tokens = 1; tokens < 300; ++tokens) {
    const ExpertLoad few = load(tokens, true), more = load(tokens + 1, true);
    EXPECT_GE(few.pairs, load(tokens, false).pairs * (1 - 1e-12));
    EXPECT_GT(more.pairs, few.pairs);
    EXPECT_LE(more.pairs / few.pairs, 1 + 1 / static_cast<double>(tokens)) << tokens;
    EXPECT_GT(more.active_experts, few.active_experts);
  }
}

TEST(ExpertLoad, an_expert_never_gets_more_than_every_token) {
  const ExpertLoad load = expert_load(layer(5, 4, 4, 4, 1.2));
  EXPECT_LE(load.pairs, 5);
  EXPECT_LE(load.active_experts, 1);
}

TEST(ExpertLoad, absurd_sizes_are_answered_at_once) {
  const ExpertLoad load = expert_load(layer(int64_t{1} << 50, 1000, int64_t{1} << 50, 2, 1.2));
  EXPECT_EQ(load.pairs, 1000 * std::ldexp(1.0, 49));
}

TEST(ExpertLoad, the_answer_does_not_depend_on_what_was_asked_before) {
  const ExpertLoad first = expert_load(layer(100, 8, 128, 8, 1.01));
  for (int64_t tokens = 1; tokens < 3000; ++tokens) expert_load(layer(tokens, 2, 16, 2, 1.2));
  const ExpertLoad again = expert_load(layer(100, 8, 128, 8, 1.01));
  EXPECT_EQ(first.pairs, again.pairs);
  EXPECT_EQ(first.active_experts, again.active_experts);
}

}  // namespace foretoken::expert_load_test
