#include "serving/tiers/tier_store.h"

#include <gtest/gtest.h>

#include "base/random.h"
#include "serving/tiers/tier_link.h"

namespace foretoken::tier_store_test {

constexpr Picoseconds one_second = 1'000'000'000'000;

TEST(TierStore, the_least_recently_used_goes_first) {
  TierStore store(32);
  std::vector<TierEntry> dropped;
  EXPECT_TRUE(store.put({.key = 1, .tokens = 16}, dropped));
  EXPECT_TRUE(store.put({.key = 2, .tokens = 16}, dropped));
  store.touch(1);
  EXPECT_TRUE(store.put({.key = 3, .tokens = 16}, dropped));
  ASSERT_EQ(dropped.size(), 1U);
  EXPECT_EQ(dropped.front().key, 2U);
  EXPECT_NE(store.find(1), nullptr);
  EXPECT_EQ(store.find(2), nullptr);
}

TEST(TierStore, what_can_never_fit_drops_nothing) {
  TierStore store(32);
  std::vector<TierEntry> dropped;
  EXPECT_TRUE(store.put({.key = 1, .tokens = 32}, dropped));
  EXPECT_FALSE(store.put({.key = 2, .tokens = 33}, dropped));
  EXPECT_TRUE(dropped.empty());
  EXPECT_EQ(store.tokens(), 32);
}

// Mattson's stack property, which the laws of whole runs rest on.
TEST(TierStore, a_larger_one_holds_all_that_a_smaller_one_holds) {
  RandomStream random(1, "accesses");
  TierStore small(10 * 16), large(25 * 16);
  std::vector<TierEntry> dropped;
  for (int i = 0; i < 5000; ++i) {
    const uint64_t key = random.below(40);
    for (TierStore* store : {&small, &large}) {
      if (!store->put({.key = key, .tokens = 16}, dropped)) store->touch(key);
    }
    for (uint64_t other = 0; other < 40; ++other) {
      ASSERT_TRUE(small.find(other) == nullptr || large.find(other) != nullptr);
    }
  }
  EXPECT_EQ(small.most_tokens(), 160);
  EXPECT_EQ(large.most_tokens(), 400);
}

TEST(TierStore, what_is_removed_makes_room) {
  TierStore store(16);
  std::vector<TierEntry> dropped;
  EXPECT_TRUE(store.put({.key = 1, .tokens = 16}, dropped));
  store.remove(1);
  store.remove(1);
  EXPECT_EQ(store.tokens(), 0);
  EXPECT_TRUE(store.put({.key = 2, .tokens = 16}, dropped));
  EXPECT_TRUE(dropped.empty());
}

TEST(TierLink, transfers_follow_each_other_and_each_has_its_latency) {
  TierLink link(BytesPerSecond(1e9), Seconds(1));
  EXPECT_EQ(link.end_of(2e9, 0), 3 * one_second);
  EXPECT_EQ(link.move(2e9, 0), 3 * one_second);
  EXPECT_EQ(link.move(1e9, one_second), 4 * one_second);
  EXPECT_EQ(link.busy(), 3 * one_second);
}

}  // namespace foretoken::tier_store_test
