#include "report/serving/fleet_report.h"

#include <gtest/gtest.h>

namespace foretoken::fleet_report_test {

constexpr Picoseconds second = 1'000'000'000'000;

FleetConfig three_places() {
  FleetConfig config;
  config.members.assign(3, {.devices = 2, .cold_start = 30 * second});
  config.pools = {{.members = 3, .at_start = 1}};
  config.scaling.kind = "reactive";
  return config;
}

// One replica for 10 s, two for 20 s, of which the second serves for 10 s.
FleetTotals half_a_minute() {
  return {.gpu_seconds = 100,
          .starts = 1,
          .sizes = {{.from = 0, .serving = 1, .held = 1},
                    {.from = 10 * second, .serving = 1, .held = 2},
                    {.from = 20 * second, .serving = 2, .held = 2}}};
}

TEST(FleetReport, means_are_over_time) {
  const FleetConfig config = three_places();
  const FleetTotals totals = half_a_minute();
  const Json json = fleet_json({.config = config, .totals = totals, .end_s = 30});
  EXPECT_NEAR(json.find("replicas_serving")->find("mean")->number(), 40.0 / 30, 1e-12);
  EXPECT_NEAR(json.find("replicas_paid_for")->find("mean")->number(), 50.0 / 30, 1e-12);
  EXPECT_EQ(json.find("replicas_serving")->find("most")->integer(), 2);
  EXPECT_NEAR(json.find("gpu_hours")->number(), 100.0 / 3600, 1e-15);
  EXPECT_EQ(json.find("sizes")->items().size(), 3u);
}

TEST(FleetReport, text_fits_a_page_and_shows_failures_only_where_there_may_be_some) {
  FleetConfig config = three_places();
  const FleetTotals totals = half_a_minute();
  const auto text = [&] { return fleet_text({.config = config, .totals = totals, .end_s = 30}); };
  EXPECT_NE(text().find("56% of running all 3 replicas throughout"), std::string::npos) << text();
  EXPECT_EQ(text().find("Failures"), std::string::npos);
  config.failures.gpu_mtbf_hours = 100;
  EXPECT_NE(text().find("Failures"), std::string::npos);
  size_t column = 0;
  for (const char character : text()) {
    column = character == '\n' ? 0 : column + 1;
    EXPECT_LE(column, 100u);
  }
}

}  // namespace foretoken::fleet_report_test
