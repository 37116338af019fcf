#include "serving/speculation/speculation_counts.h"

#include <gtest/gtest.h>

namespace foretoken::speculation_counts_test {

TEST(SpeculationCounts, are_those_of_vllm) {
  SpeculationCounts counts;
  counts.add(3, 3);
  counts.add(3, 1);
  counts.add(3, 0);
  EXPECT_EQ(counts.drafts, 3);
  EXPECT_EQ(counts.draft_tokens, 9);
  EXPECT_EQ(counts.accepted_tokens, 4);
  EXPECT_DOUBLE_EQ(counts.acceptance_rate(), 4.0 / 9);
  EXPECT_DOUBLE_EQ(counts.acceptance_length(), 1 + 4.0 / 3);
  EXPECT_DOUBLE_EQ(counts.rate_at_position(0), 2.0 / 3);
  EXPECT_DOUBLE_EQ(counts.rate_at_position(2), 1.0 / 3);
}

TEST(SpeculationCounts, positions_add_up_to_the_length) {
  SpeculationCounts counts;
  for (int64_t i = 0; i < 40; ++i) counts.add(5, i * i % 6);
  double length = 1;
  for (size_t i = 0; i < counts.accepted_by_position.size(); ++i) length += counts.rate_at_position(i);
  EXPECT_NEAR(length, counts.acceptance_length(), 1e-12);
}

}  // namespace foretoken::speculation_counts_test
