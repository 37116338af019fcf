#include "serving/engine/sglang_release.h"

#include <gtest/gtest.h>

#include "compose/stack.h"

namespace foretoken::sglang_release_test {

TEST(SglangReleases, hide_the_host_of_drafts_since_0_5_11) {
  for (const char* older : {"0.4.9", "0.5.9", "0.5.10", "0.5.10.post1", "0.5.6rc1"}) {
    EXPECT_EQ(sglang_stack(older, true), "sglang-0.5.10") << older;
    EXPECT_EQ(sglang_stack(older, false), "sglang") << older;
  }
  for (const char* newer : {"0.5.11", "0.5.12.post1", "0.6.0", "1.0", "main", ""}) {
    EXPECT_EQ(sglang_stack(newer, true), "sglang") << newer;
  }
}

TEST(SglangReleases, have_stacks_that_exist) {
  const StackCatalogue stacks(FORETOKEN_SOURCE_DIR "/data/stacks");
  const Stack older = stacks.stack("sglang-0.5.10"), newer = stacks.stack("sglang");
  EXPECT_GT(older.costs.step_host, newer.costs.step_host);
  EXPECT_EQ(older.costs.front.piece, newer.costs.front.piece);
}

}  // namespace foretoken::sglang_release_test
