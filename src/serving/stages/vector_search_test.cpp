#include "serving/stages/vector_search.h"

#include <gtest/gtest.h>

namespace foretoken {
namespace {

TEST(VectorSearch, one_question_reads_its_lists_at_the_speed_of_one_core) {
  // RAGO's index: 64 billion passages of 96 bytes, 0.1% of them read.
  const VectorSearch search{.vectors = 64e9};
  EXPECT_DOUBLE_EQ(search.bytes_per_question(), 6.144e9);
  EXPECT_DOUBLE_EQ(search_seconds(search, 1).value, 6.144e9 / 18e9);
}

TEST(VectorSearch, many_questions_are_bound_by_memory) {
  const VectorSearch search{.vectors = 64e9};
  const double bandwidth = 460e9 * 0.8;
  EXPECT_DOUBLE_EQ(search_seconds(search, 96).value, 96 * 6.144e9 / bandwidth);
}

TEST(VectorSearch, time_never_falls_with_questions_and_a_question_never_takes_longer_in_a_larger_batch) {
  const VectorSearch search;
  double before = 0;
  for (int64_t questions = 1; questions <= 96; ++questions) {
    const Estimate seconds = search_seconds(search, questions);
    EXPECT_GE(seconds.value, before) << questions;
    EXPECT_LE(seconds.value / static_cast<double>(questions), search_seconds(search, 1).value);
    EXPECT_LT(seconds.low, seconds.value);
    EXPECT_GT(seconds.high, seconds.value);
    before = seconds.value;
  }
}

TEST(VectorSearch, shards_divide_what_each_reads) {
  const VectorSearch whole, half{.shards = 2};
  EXPECT_DOUBLE_EQ(search_seconds(half, 7).value, search_seconds(whole, 7).value / 2);
}

}  // namespace
}  // namespace foretoken
