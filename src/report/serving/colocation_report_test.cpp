#include "report/serving/colocation_report.h"

#include <gtest/gtest.h>

namespace foretoken::colocation_report_test {

ColocationReport some_report() {
  ColocationReport report{.sharing = Sharing::swap, .engines = {}, .duration_s = 10, .percentiles = {99}};
  const LatencySummary latency{.mean_ms = 12.5, .median_ms = 12, .percentiles_ms = {40}};
  report.engines.push_back(
      {.model = "one",
       .kv_blocks = 100,
       .latencies = {.completed = 3, .output_tokens = 50, .ttft = latency, .tpot = latency, .e2el = latency},
       .use = {.alone_s = 2, .busy_s = 3, .switches = 4, .moved_bytes = 16e9}});
  return report;
}

TEST(ColocationReport, tells_each_model_what_sharing_cost_it) {
  const std::string text = colocation_text(some_report());
  for (const char* part : {"swap", "one", "12.50", "5.0", "1.50", "Weights moved: 16.0 GB"}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
  }
}

TEST(ColocationReport, json_has_the_same_numbers) {
  const Json json = colocation_json(some_report());
  const Json& engine = json.find("engines")->items().front();
  EXPECT_EQ(json.find("sharing")->string(), "swap");
  EXPECT_EQ(engine.find("slowdown")->number(), 1.5);
  EXPECT_EQ(engine.find("p99_ttft_ms")->number(), 40);
  EXPECT_EQ(engine.find("output_throughput")->number(), 5);
}

}  // namespace foretoken::colocation_report_test
