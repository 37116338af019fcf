#include "serving/stages/vector_search.h"

#include <gtest/gtest.h>

namespace foretoken::vector_search_test {

TEST(VectorSearch, a_question_reads_its_lists_at_the_speed_of_one_core) {
  // RAGO's index: 64 billion passages of 96 bytes, 0.1% of them read.
  const VectorSearch search{.vectors = 64e9};
  EXPECT_DOUBLE_EQ(search.bytes_per_question(), 6.144e9);
  EXPECT_DOUBLE_EQ(search_seconds(search).value, 6.144e9 / 18e9);
  EXPECT_LT(search_seconds(search).low, search_seconds(search).value);
  EXPECT_GT(search_seconds(search).high, search_seconds(search).value);
}

TEST(VectorSearch, questions_at_once_never_read_more_than_the_memory_gives) {
  for (const int64_t cores : {1, 8, 96}) {
    for (const double bandwidth : {10e9, 100e9, 460e9, 5000e9}) {
      const VectorSearch search{.cores = cores, .memory_bytes_per_s = bandwidth};
      const auto at_once = static_cast<double>(search.questions_at_once());
      EXPECT_GE(at_once, 1);
      EXPECT_LE(at_once, static_cast<double>(cores));
      EXPECT_LE(at_once * search.bytes_per_question() / search_seconds(search).value, 0.8 * bandwidth * (1 + 1e-12));
    }
  }
}

TEST(VectorSearch, time_grows_with_the_index_and_shards_divide_it) {
  const VectorSearch whole, half{.shards = 2}, twice{.vectors = 2e9}, probed{.probed_share = 0.002};
  EXPECT_DOUBLE_EQ(search_seconds(half).value, search_seconds(whole).value / 2);
  EXPECT_DOUBLE_EQ(search_seconds(twice).value, search_seconds(whole).value * 2);
  EXPECT_DOUBLE_EQ(search_seconds(probed).value, search_seconds(whole).value * 2);
}

}  // namespace foretoken::vector_search_test
