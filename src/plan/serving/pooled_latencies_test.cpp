#include "plan/serving/pooled_latencies.h"

#include <gtest/gtest.h>

namespace foretoken::pooled_latencies_test {

constexpr int64_t requests = 5000;
const LatencySlo within_100ms{.metric = SloMetric::ttft, .limit_ms = 100};

// `is_late` tells of each request's number.
template <typename Rule>
LatencyLog run_of(Rule is_late) {
  LatencyLog log(requests);
  for (int64_t i = 0; i < requests; ++i) {
    const Picoseconds ttft = (is_late(i) ? 200 : 50) * 1'000'000'000LL;
    log.request_ended({.id = i, .output_tokens = 1, .first_token = ttft, .last_token = ttft});
  }
  return log;
}

TEST(PooledLatencies, a_percentile_is_that_of_the_requests_of_all_runs) {
  PooledLatencies pool;
  pool.add(run_of([](int64_t) { return false; }));
  EXPECT_DOUBLE_EQ(pool.percentile_ms(within_100ms), 50);
  pool.add(run_of([](int64_t i) { return i % 40 == 0; }));
  EXPECT_DOUBLE_EQ(pool.percentile_ms(within_100ms), 200);
  EXPECT_DOUBLE_EQ(pool.late_share({&within_100ms, 1}), 0.0125);
}

TEST(PooledLatencies, late_requests_that_come_in_clusters_are_less_sure_than_those_that_do_not) {
  PooledLatencies even, clustered;
  for (int run = 0; run < 4; ++run) {
    even.add(run_of([](int64_t i) { return i % 125 == 0; }));
    clustered.add(run_of([&](int64_t i) { return run == 2 && i < 160; }));
  }
  const std::span<const LatencySlo> limits(&within_100ms, 1);
  EXPECT_DOUBLE_EQ(even.late_share(limits), 0.008);
  EXPECT_DOUBLE_EQ(clustered.late_share(limits), 0.008);
  EXPECT_NEAR(even.late_share_at_most(limits), 0.008, 1e-12);
  EXPECT_GT(clustered.late_share_at_most(limits), 0.015);
}

TEST(PooledLatencies, answers_of_one_token_have_no_time_per_token) {
  PooledLatencies pool;
  pool.add(run_of([](int64_t) { return false; }));
  const LatencySlo tpot{.metric = SloMetric::tpot, .limit_ms = 1};
  EXPECT_EQ(pool.percentile_ms(tpot), 0);
  EXPECT_EQ(pool.late_share_at_most({&tpot, 1}), 0);
  const LatencySlo both[] = {within_100ms, tpot};
  EXPECT_EQ(pool.late_share(both), 0);
}

}  // namespace foretoken::pooled_latencies_test
