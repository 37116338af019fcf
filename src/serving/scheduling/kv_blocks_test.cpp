#include "serving/scheduling/kv_blocks.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "base/random.h"

namespace foretoken::kv_blocks_test {

Sequence sequence_of(int64_t id, int64_t tokens, std::vector<int64_t> prefix = {}) {
  Sequence sequence;
  sequence.begin({.id = id,
                  .input_tokens = tokens,
                  .output_tokens = 100,
                  .prefix_block_tokens = 16,
                  .prefix_blocks = std::move(prefix)});
  return sequence;
}

void compute(KvBlocks& kv, Sequence& sequence, int64_t tokens) {
  ASSERT_TRUE(kv.cover(sequence, tokens));
  sequence.computed = tokens;
  kv.publish(sequence);
}

TEST(KvBlocks, a_sequence_holds_whole_blocks) {
  KvBlocks kv(10, 16, true);
  Sequence sequence = sequence_of(1, 40);
  EXPECT_TRUE(kv.cover(sequence, 33));
  EXPECT_EQ(kv.used(), 3);
  EXPECT_EQ(kv.missing(sequence, 48), 0);
  EXPECT_EQ(kv.missing(sequence, 49), 1);
  kv.give_back(sequence);
  EXPECT_EQ(kv.free(), 10);
  for (const int64_t size : {1, 16, 24, 64}) {  // powers of two and others
    const KvBlocks sized(10, size, true);
    EXPECT_EQ(sized.blocks_for(0), 0) << size;
    for (const int64_t blocks : {1, 3, 10}) {
      EXPECT_EQ(sized.blocks_for((blocks - 1) * size + 1), blocks) << size;
      EXPECT_EQ(sized.blocks_for(blocks * size), blocks) << size;
    }
  }
}

TEST(KvBlocks, too_few_free_blocks_change_nothing) {
  KvBlocks kv(2, 16, true);
  Sequence sequence = sequence_of(1, 100);
  EXPECT_FALSE(kv.cover(sequence, 33));
  EXPECT_EQ(kv.free(), 2);
  EXPECT_EQ(sequence.blocks, 0);
}

TEST(KvBlocks, a_prompt_shares_the_blocks_it_has_in_common_with_another) {
  KvBlocks kv(10, 16, true);
  Sequence one = sequence_of(1, 64, {7, 8, 9, 10}), two = sequence_of(2, 64, {7, 8, 11, 10});
  kv.describe(one);
  kv.describe(two);
  compute(kv, one, 64);
  const KvBlocks::Prefix prefix = kv.find_prefix(two, 63);
  EXPECT_EQ(prefix.blocks, 2);
  EXPECT_EQ(prefix.free, 0);
  kv.take_prefix(two, prefix);
  EXPECT_EQ(kv.used(), 4);
  compute(kv, two, 64);
  EXPECT_EQ(kv.used(), 6);
}

TEST(KvBlocks, a_whole_prompt_in_the_cache_still_computes_its_last_block) {
  KvBlocks kv(10, 16, true);
  Sequence one = sequence_of(1, 32, {7, 8}), two = sequence_of(2, 32, {7, 8});
  kv.describe(one);
  kv.describe(two);
  compute(kv, one, 32);
  EXPECT_EQ(kv.find_prefix(two, two.known_tokens() - 1).blocks, 1);
}

TEST(KvBlocks, blocks_given_back_are_found_until_they_are_reused_the_last_of_a_sequence_first) {
  KvBlocks kv(4, 16, true);
  Sequence one = sequence_of(1, 64, {1, 2, 3, 4}), same = sequence_of(2, 64, {1, 2, 3, 4});
  kv.describe(one);
  kv.describe(same);
  compute(kv, one, 64);
  kv.give_back(one);
  KvBlocks::Prefix prefix = kv.find_prefix(same, 1000);
  EXPECT_EQ(prefix.blocks, 4);
  EXPECT_EQ(prefix.free, 4);
  Sequence other = sequence_of(3, 32);
  compute(kv, other, 32);
  prefix = kv.find_prefix(same, 1000);
  EXPECT_EQ(prefix.blocks, 2);
}

TEST(KvBlocks, a_preempted_sequence_finds_its_own_output_again) {
  KvBlocks kv(10, 16, true);
  Sequence sequence = sequence_of(1, 20);
  compute(kv, sequence, 50);
  kv.give_back(sequence);
  sequence.restart();
  sequence.promised = 31;
  const KvBlocks::Prefix prefix = kv.find_prefix(sequence, 50);
  EXPECT_EQ(prefix.blocks, 3);
  kv.take_prefix(sequence, prefix);
  EXPECT_EQ(kv.used(), 3);
}

TEST(KvBlocks, copies_of_one_content_are_found_as_long_as_one_is_left) {
  KvBlocks kv(4, 16, true);
  Sequence one = sequence_of(1, 16, {5}), two = sequence_of(2, 16, {5}), third = sequence_of(3, 17, {5});
  for (Sequence* sequence : {&one, &two, &third}) kv.describe(*sequence);
  ASSERT_TRUE(kv.cover(one, 16) && kv.cover(two, 16));
  for (Sequence* sequence : {&one, &two}) {
    sequence->computed = 16;
    kv.publish(*sequence);
  }
  kv.give_back(one);
  Sequence filler = sequence_of(4, 48);
  ASSERT_TRUE(kv.cover(filler, 48));  // reuses the block of `one`
  EXPECT_EQ(kv.find_prefix(third, 16).blocks, 1);
  kv.give_back(two);
  EXPECT_EQ(kv.find_prefix(third, 16).free, 1);
}

TEST(KvBlocks, without_prefix_caching_nothing_is_found) {
  KvBlocks kv(4, 16, false);
  Sequence one = sequence_of(1, 16, {5}), two = sequence_of(2, 17, {5});
  kv.describe(one);
  compute(kv, one, 16);
  EXPECT_EQ(kv.find_prefix(two, 16).blocks, 0);
}

TEST(KvBlocks, numbers_for_larger_blocks_describe_the_blocks_inside_them) {
  KvBlocks kv(200, 16, true);
  Sequence one = sequence_of(1, 1024), two = sequence_of(2, 1024);
  for (Sequence* sequence : {&one, &two}) sequence->request.prefix_block_tokens = 512;
  one.request.prefix_blocks = {1, 2};
  two.request.prefix_blocks = {1, 3};
  kv.describe(one);
  kv.describe(two);
  compute(kv, one, 1024);
  EXPECT_EQ(kv.find_prefix(two, 1023).blocks, 512 / 16);
}

TEST(KvBlocks, windows_and_states_stop_growing) {
  const std::vector<CacheGroup> groups{{.kind = "full attention", .block_tokens = 16},
                                       {.kind = "window of 64", .block_tokens = 16, .window = 64},
                                       {.kind = "recurrent state"}};
  KvBlocks kv(20, 16, true, groups);
  EXPECT_EQ(kv.blocks_for(16), 1 + 1 + 1);
  EXPECT_EQ(kv.blocks_for(160), 10 + 5 + 1);
  EXPECT_EQ(kv.blocks_for(kv.tokens_in(20)), 20);
  EXPECT_GT(kv.blocks_for(kv.tokens_in(20) + 1), 20);
  Sequence sequence = sequence_of(1, 160);
  ASSERT_TRUE(kv.cover(sequence, 160));
  EXPECT_EQ(kv.used(), 16);
  kv.give_back(sequence);
  EXPECT_EQ(kv.free(), 20);
}

TEST(KvBlocks, layers_that_keep_every_token_share_a_prefix_and_windows_do_not) {
  const std::vector<CacheGroup> groups{{.kind = "full attention", .block_tokens = 16},
                                       {.kind = "full attention", .block_tokens = 16},
                                       {.kind = "window of 32", .block_tokens = 16, .window = 32}};
  KvBlocks kv(60, 16, true, groups);
  Sequence one = sequence_of(1, 128, {1, 2, 3, 4, 5, 6, 7, 8}), two = sequence_of(2, 128, {1, 2, 3, 4, 9});
  kv.describe(one);
  kv.describe(two);
  compute(kv, one, 128);
  EXPECT_EQ(kv.used(), 2 * 8 + 3);
  const KvBlocks::Prefix prefix = kv.find_prefix(two, 127);
  EXPECT_EQ(prefix.tokens, 64);
  EXPECT_EQ(prefix.blocks, 2 * 4);
  EXPECT_EQ(prefix.free, 0);
  kv.take_prefix(two, prefix);
  compute(kv, two, 128);
  EXPECT_EQ(kv.used(), 2 * 8 + 3 + 2 * 4 + 3);
  kv.give_back(one);
  kv.give_back(two);
  EXPECT_EQ(kv.free(), 60);
  EXPECT_EQ(kv.find_prefix(two, 127).free, 2 * 5) << "all that others can have in common";
}

TEST(KvBlocks, a_content_of_several_blocks_is_lost_with_the_first_of_them) {
  const std::vector<CacheGroup> groups{{.kind = "full attention", .block_tokens = 16},
                                       {.kind = "full attention", .block_tokens = 16},
                                       {.kind = "window of 16", .block_tokens = 16, .window = 16}};
  KvBlocks kv(7, 16, true, groups);
  Sequence one = sequence_of(1, 32, {1, 2}), same = sequence_of(2, 32, {1, 2}), other = sequence_of(3, 16);
  kv.describe(one);
  kv.describe(same);
  compute(kv, one, 32);
  kv.give_back(one);
  EXPECT_EQ(kv.find_prefix(same, 1000).tokens, 32);
  compute(kv, other, 16);  // one block that was never used, two of the window
  EXPECT_EQ(kv.find_prefix(same, 1000).tokens, 32);
  compute(kv, other, 17);  // three more: two of the second content, one of the first
  EXPECT_EQ(kv.find_prefix(same, 1000).tokens, 0);
  EXPECT_EQ(kv.free(), 1);
}

TEST(KvBlocks, nothing_is_found_beside_recurrent_states) {
  KvBlocks kv(20, 16, true, {{.kind = "full attention", .block_tokens = 16}, {.kind = "recurrent state"}});
  Sequence one = sequence_of(1, 32, {1, 2}), two = sequence_of(2, 32, {1, 2});
  kv.describe(one);
  compute(kv, one, 32);
  EXPECT_EQ(kv.find_prefix(two, 31).tokens, 0);
}

// The cache itself checks free + used after every call; here blocks are counted from outside.
void use_at_random(KvBlocks kv, int64_t blocks_of_a_content) {
  RandomStream random(9, "blocks");
  std::vector<Sequence> held;
  for (int64_t i = 0; i < 3000; ++i) {
    if (!held.empty() && random.below(3) == 0) {
      const size_t which = random.below(held.size());
      kv.give_back(held[which]);
      held.erase(held.begin() + static_cast<std::ptrdiff_t>(which));
      continue;
    }
    const auto tokens = static_cast<int64_t>(1 + random.below(120));
    std::vector<int64_t> prefix;
    for (int64_t block = 0; block < tokens / 32; ++block) {
      prefix.push_back(block * 2 + static_cast<int64_t>(random.below(2)));
    }
    Sequence sequence = sequence_of(i, tokens, prefix);
    kv.describe(sequence);
    const KvBlocks::Prefix found = kv.find_prefix(sequence, tokens - 1);
    if (kv.blocks_for(tokens) - found.blocks + found.free > kv.free()) continue;
    kv.take_prefix(sequence, found);
    compute(kv, sequence, tokens);
    held.push_back(std::move(sequence));
    std::vector<int32_t> distinct;
    int64_t own = 0;
    for (const Sequence& one : held) {
      distinct.insert(distinct.end(), one.contents.begin(), one.contents.end());
      own += one.blocks - blocks_of_a_content * static_cast<int64_t>(one.contents.size());
    }
    std::sort(distinct.begin(), distinct.end());
    distinct.erase(std::unique(distinct.begin(), distinct.end()), distinct.end());
    ASSERT_EQ(blocks_of_a_content * static_cast<int64_t>(distinct.size()) + own, kv.used());
  }
}

TEST(KvBlocks, random_use_loses_no_block) {
  use_at_random(KvBlocks(64, 16, true), 1);
}

TEST(KvBlocks, random_use_of_pages_of_one_token_loses_no_block) {
  use_at_random(KvBlocks(64 * 16, 1, true), 16);
}

TEST(KvBlocks, pages_of_one_token_are_kept_as_the_trace_numbers_them) {
  KvBlocks kv(1000, 1, true);
  Sequence one = sequence_of(1, 64, {7, 8, 9, 10}), two = sequence_of(2, 70, {7, 8, 11}),
           same = sequence_of(3, 64, {7, 8, 9, 10});
  for (Sequence* sequence : {&one, &two, &same}) kv.describe(*sequence);
  compute(kv, one, 64);
  EXPECT_EQ(one.contents.size(), 4U) << "not one for each token";
  EXPECT_EQ(kv.find_prefix(two, 69).tokens, 32);
  const KvBlocks::Prefix all = kv.find_prefix(same, 63);
  EXPECT_EQ(all.tokens, 63) << "all but the token that is computed again";
  kv.take_prefix(same, all);
  compute(kv, same, 64);
  EXPECT_EQ(kv.used(), 64);
  kv.give_back(one);
  EXPECT_EQ(kv.used(), 64);
  kv.give_back(same);
  EXPECT_EQ(kv.free(), 1000);
  EXPECT_EQ(kv.find_prefix(two, 69).free, 32);
}

TEST(KvBlocks, random_use_of_several_kinds_of_layers_loses_no_block) {
  use_at_random(KvBlocks(150, 16, true,
                         {{.kind = "full attention", .block_tokens = 16},
                          {.kind = "window of 32", .block_tokens = 16, .window = 32},
                          {.kind = "full attention", .block_tokens = 16}}),
                2);
}

}  // namespace foretoken::kv_blocks_test
