#include "report/chip/systolic_report.h"

#include <sstream>

#include <gtest/gtest.h>

namespace foretoken::systolic_report_test {

SystolicReport report_of_gemm(const GemmSize& gemm, int64_t repeats) {
  SystolicReport report{.array = {.rows = 8, .columns = 8}};
  const RepeatedSystolicLayer layer{.name = "a layer with a name longer than any table would show in full, ever",
                                    .layer = as_layer(gemm),
                                    .repeats = repeats};
  report.rows.push_back({.layer = layer, .run = run_systolic_layer(report.array, layer.layer, dataflows)});
  return report;
}

TEST(SystolicReport, fits_a_hundred_columns) {
  std::istringstream lines(systolic_text(report_of_gemm({.m = 2000, .n = 65, .k = 99}, 1000)));
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 100u) << line;
}

TEST(SystolicReport, the_total_counts_repeats) {
  const Json json = systolic_json(report_of_gemm({.m = 50, .n = 60, .k = 70}, 3));
  const JsonView view(json, "report");
  const JsonView row = view.at("layers").items().front();
  for (const char* key : {"cycles", "sram_words", "dram_words"}) {
    EXPECT_EQ(view.at("total").at(key).number(), 3 * row.at(key).number()) << key;
  }
}

TEST(SystolicReport, what_was_not_run_word_by_word_is_not_shown_as_zero) {
  const SystolicReport report = report_of_gemm({.m = 65536, .n = 65536, .k = 65536}, 1);
  const Json json = systolic_json(report);
  EXPECT_FALSE(JsonView(json, "report").at("layers").items().front().has("dram_words"));
  EXPECT_NE(systolic_text(report).find("too large to simulate word by word"), std::string::npos);
}

}  // namespace foretoken::systolic_report_test
