#include "plan/serving/latency_slo.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"

namespace foretoken::latency_slo_test {

using testing::HasSubstr;

TEST(LatencySlo, both_spellings_say_the_same) {
  const std::vector<LatencySlo> expected = {{.metric = SloMetric::ttft, .limit_ms = 500},
                                            {.metric = SloMetric::tpot, .limit_ms = 50},
                                            {.metric = SloMetric::e2el, .limit_ms = 20000}};
  EXPECT_EQ(parse_slos("ttft<500ms@p99,tpot<50ms@p99,e2e<20s@p99", "slo"), expected);
  EXPECT_EQ(parse_slos("TTFT <= 0.5s, tpot < 50, e2el<20s", "slo"), expected);
  EXPECT_EQ(parse_slos("ttft:500,tpot:50,e2el:20000", "slo"), expected);
  EXPECT_EQ(parse_slos("ttft<500ms@99,tpot<50ms@99,e2e<20s@P99", "slo"), expected);
}

TEST(LatencySlo, its_key_is_read_back) {
  for (const LatencySlo& slo : parse_slos("ttft<0.35s@p99.9,ttft<500.1ms,tpot<12.5ms@p95,itl<80@p50,e2e<20s", "slo")) {
    EXPECT_EQ(parse_slos(slo_key(slo), "slo"), std::vector{slo}) << slo_key(slo);
  }
}

TEST(LatencySlo, a_wrong_part_is_named) {
  const auto complaint = [](const char* text) {
    try {
      parse_slos(text, "slo");
    } catch (const InputError& error) {
      return std::string(error.what());
    }
    return std::string("none");
  };
  EXPECT_THAT(complaint("tttf<500ms"), HasSubstr("ttft"));
  EXPECT_THAT(complaint("ttft=500"), HasSubstr("METRIC<TIME@pN"));
  EXPECT_THAT(complaint("ttft<fast"), HasSubstr("500ms"));
  EXPECT_THAT(complaint("ttft<500ms@often"), HasSubstr("percentile"));
  EXPECT_THAT(complaint("ttft<500ms,tpot<9,ttft<400ms@p99"), HasSubstr("one limit for each metric"));
  EXPECT_THAT(complaint("ttft<500ms@p0"), HasSubstr("percentile"));
  EXPECT_THAT(complaint("ttft<0"), HasSubstr("above 0"));
  EXPECT_THAT(complaint(","), HasSubstr("limits such as"));
}

TEST(LatencySlo, what_a_run_achieved_is_at_its_percentile) {
  const std::vector<LatencySlo> slos = parse_slos("ttft<500ms@p90,tpot<50ms@p95", "slo");
  const std::vector<double> percentiles = slo_percentiles(slos);
  ServingMetrics metrics;
  for (const double percentile : percentiles) {
    metrics.ttft.percentiles_ms.push_back(percentile * 10);
    metrics.tpot.percentiles_ms.push_back(percentile);
  }
  EXPECT_EQ(achieved_ms(slos[0], metrics, percentiles), 900);
  EXPECT_EQ(achieved_ms(slos[1], metrics, percentiles), 95);
}

}  // namespace foretoken::latency_slo_test
