#include "serving/results/latency_curves.h"

#include <gtest/gtest.h>

namespace foretoken::latency_curves_test {

constexpr Picoseconds millisecond = 1'000'000'000;

TEST(LatencyCurves, rise_from_the_fastest_request_to_the_slowest) {
  LatencyCurves curves;
  for (int i = 1; i <= 50; ++i) {
    curves.request_ended(
        {.output_tokens = 11, .arrival = 0, .first_token = i * millisecond, .last_token = 3 * i * millisecond});
  }
  const LatencyCurves::Curve ttft = curves.ttft();
  EXPECT_NEAR(ttft.front().first, 1, 1e-9);
  EXPECT_NEAR(ttft.back().first, 50, 1e-9);
  EXPECT_NEAR(ttft.back().second, 100, 1e-9);
  for (size_t i = 1; i < ttft.size(); ++i) {
    EXPECT_GE(ttft[i].first, ttft[i - 1].first);
    EXPECT_GT(ttft[i].second, ttft[i - 1].second);
  }
  EXPECT_NEAR(curves.tpot().back().first, 10, 1e-9);
  EXPECT_NEAR(curves.e2el().back().first, 150, 1e-9);
}

TEST(LatencyCurves, rejected_requests_and_single_tokens_have_no_place_where_they_mean_nothing) {
  LatencyCurves curves;
  curves.request_ended({.outcome = RequestOutcome::rejected});
  EXPECT_TRUE(curves.ttft().empty());
  curves.request_ended({.output_tokens = 1, .first_token = millisecond, .last_token = millisecond});
  EXPECT_TRUE(curves.tpot().empty());
  EXPECT_FALSE(curves.ttft().empty());
}

}  // namespace foretoken::latency_curves_test
