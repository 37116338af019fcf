#include "plan/serving/pooled_latencies.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/random.h"

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

// However few requests of the other runs are late, it does not fall below that.
TEST(PooledLatencies, the_least_that_other_runs_may_make_of_it_is_known_before_them) {
  const std::span<const LatencySlo> limits(&within_100ms, 1);
  PooledLatencies begun;
  begun.add(run_of([](int64_t i) { return i < 60; }));
  begun.add(run_of([](int64_t i) { return i % 100 == 0; }));
  const double least = begun.late_share_at_most_of(4, limits);
  EXPECT_LT(least, begun.late_share_at_most(limits));
  EXPECT_GT(least, begun.late_share(limits) / 2);
  double reached = 1;
  for (int64_t every = 30; every <= requests; every += 10) {
    PooledLatencies all = begun;
    for (int run = 0; run < 2; ++run) all.add(run_of([&](int64_t i) { return i % every == 0; }));
    EXPECT_GE(all.late_share_at_most(limits), least * (1 - 1e-9)) << every;
    reached = std::min(reached, all.late_share_at_most(limits));
  }
  EXPECT_LT(reached, least * 1.02);
}

// A run that another process did is known by its longest times alone.
TEST(PooledLatencies, thinned_runs_tell_the_same_of_all_of_them) {
  RandomStream random(5, "latencies");
  PooledLatencies whole, thin;
  const LatencySlo limits[] = {{.metric = SloMetric::ttft, .limit_ms = 180, .percentile = 99},
                               {.metric = SloMetric::tpot, .limit_ms = 10, .percentile = 90},
                               {.metric = SloMetric::ttft, .limit_ms = 190, .percentile = 50}};
  for (int run = 0; run < 3; ++run) {
    LatencyLog log(requests);
    for (int64_t i = 0; i < requests; ++i) {
      const auto first = static_cast<Picoseconds>((100 + 100 * random.uniform()) * 1e9);
      const int64_t tokens = i % 7 == 0 ? 1 : 11;
      log.request_ended(
          {.id = i, .output_tokens = tokens, .first_token = first, .last_token = first + i % 200 * 1'000'000'000LL});
    }
    whole.add(log);
    const LatencyLog part = log.thinned(std::span(limits).first(2), 3);
    EXPECT_LT(std::count_if(part.requests().begin(), part.requests().end(),
                            [](const LatencyLog::Took& one) { return one.ttft > 0; }),
              requests / 3);
    thin.add(part);
    EXPECT_EQ(log.thinned(limits, 3).requests()[1].ttft, log.requests()[1].ttft) << "a median needs all of them";
  }
  for (const LatencySlo& limit : std::span(limits).first(2)) {
    EXPECT_EQ(thin.percentile_ms(limit), whole.percentile_ms(limit));
    EXPECT_EQ(thin.late_share_at_most({&limit, 1}), whole.late_share_at_most({&limit, 1}));
  }
  EXPECT_EQ(thin.late_share(std::span(limits).first(2)), whole.late_share(std::span(limits).first(2)));
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
