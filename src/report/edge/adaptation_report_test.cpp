#include "report/edge/adaptation_report.h"

#include <gtest/gtest.h>

namespace foretoken::adaptation_report_test {

AdaptationReport example_report() {
  AdaptationReport report{.space = &architecture_space("nasbench201"), .timings = 9, .own_mape = 4.25};
  report.failed.push_back({.row = 3, .cells = {"300000"}, .milliseconds = 0.003});
  report.resembles.push_back({.name = "gold_6240", .share = 0.8});
  report.predicted.push_back({.cells = {"321034"}, .milliseconds = Estimate{.value = 12, .low = 10, .high = 14.5}});
  report.measure_next.push_back({.cells = {"333333"}, .milliseconds = Estimate{.value = 30, .low = 20, .high = 45}});
  return report;
}

TEST(AdaptationReport, text_names_what_was_left_out_predicted_and_advised) {
  const std::string text = adaptation_text(example_report());
  for (const char* part : {"row 3, 300000 at 0.003 ms", "gold_6240 80%", "321034", "12 ms", "10 to 14.5", "333333"})
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
}

TEST(AdaptationReport, csv_has_a_row_for_each_prediction) {
  EXPECT_EQ(adaptation_csv(example_report()), "ops,predicted_ms,low_ms,high_ms\n321034,12,10,14.5\n");
}

TEST(AdaptationReport, json_says_null_where_nothing_was_timed) {
  AdaptationReport report{.space = &architecture_space("nasbench201")};
  report.measure_next.push_back({.cells = {"333333"}});
  const std::string text = adaptation_json(report).dump(0);
  EXPECT_NE(text.find("\"own_mape\":null"), std::string::npos);
  EXPECT_NE(text.find("{\"architecture\":{\"ops\":\"333333\"},\"milliseconds\":null}"), std::string::npos) << text;
}

}  // namespace foretoken::adaptation_report_test
