#include "serving/results/ttft_ranking.h"

#include <gtest/gtest.h>

namespace foretoken::ttft_ranking_test {

RequestRecord record(int64_t id, Picoseconds ttft) {
  return {.id = id, .arrival = 1000, .first_token = 1000 + ttft, .last_token = 5000};
}

TEST(TtftRanking, finds_requests_by_percentile) {
  TtftRanking ranking;
  EXPECT_FALSE(ranking.request_at(99).has_value());
  for (int64_t i = 0; i <= 100; ++i) ranking.request_ended(record(i, (37 * i) % 101));
  RequestRecord failed = record(200, 1'000'000);
  failed.outcome = RequestOutcome::rejected;
  ranking.request_ended(failed);
  const std::vector<RequestRecord> around = ranking.between(98, 100);
  ASSERT_EQ(around.size(), 3U);
  EXPECT_EQ(around.front().ttft(), 98);
  EXPECT_EQ(around.back().ttft(), 100);
  EXPECT_EQ(ranking.request_at(0), 0);
  EXPECT_EQ(ranking.request_at(99), around[1].id);
}

}  // namespace foretoken::ttft_ranking_test
