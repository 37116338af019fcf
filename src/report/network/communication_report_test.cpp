#include "report/network/communication_report.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

namespace foretoken::communication_report_test {

CommunicationFitSummary some_summary() {
  CommunicationFitSummary summary;
  summary.entries.push_back({.law = "deepep_low_latency",
                             .system = "rtx_pro_6000_server",
                             .rows = 4572,
                             .held_out = {.n = 4572, .mape = 12.34, .coverage90 = 90},
                             .sibling = {},
                             .withheld = {.n = 10, .mape = 20, .coverage90 = 85},
                             .told = {}});
  return summary;
}

TEST(CommunicationReport, a_fit_fits_100_columns_and_shows_a_dash_for_what_could_not_be_scored) {
  const std::string text = communication_fit_text(some_summary());
  EXPECT_NE(text.find("12.3 (90)"), std::string::npos) << text;
  EXPECT_NE(text.find(" - "), std::string::npos) << text;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 100U) << line;
}

TEST(CommunicationReport, what_could_not_be_scored_is_null_in_json) {
  const Json json = communication_fit_json(some_summary());
  const Json& entry = json.find("entries")->items().front();
  EXPECT_EQ(entry.find("sibling")->kind(), Json::Kind::null);
  EXPECT_EQ(entry.find("held_out")->find("mape")->number(), 12.34);
}

TEST(CommunicationReport, a_scored_row_has_a_cell_for_every_column) {
  const CommunicationRow row{
      .file = "a,b.csv",
      .row = 3,
      .system = "h100_sxm",
      .group = "h100_sxm/all_reduce",
      .call = {.law = "nccl", .operation = "all_reduce", .variant = "2.27.3 half", .bytes = 1024},
      .seconds = 10e-6};
  const std::string line = scored_communication_row(
      {.row = &row, .predicted = {.seconds = {.value = 11e-6, .low = 9e-6, .high = 13e-6}, .tier = Tier::measured}});
  const auto commas = [](const std::string& text) { return std::count(text.begin(), text.end(), ','); };
  EXPECT_EQ(commas(line), commas(scored_communication_header()) + 1);  // one is inside the quoted file name
  EXPECT_NE(line.find("\"a,b.csv\",3,h100_sxm"), std::string::npos) << line;
}

TEST(CommunicationReport, a_scored_row_between_nodes_says_what_it_is) {
  const BetweenNodesRow row{.row = 7,
                            .source = "lab, one",
                            .cluster = "h100_ib_rail",
                            .collective = "all_reduce",
                            .role = "check",
                            .nodes = 2,
                            .gpus_per_node = 8,
                            .bytes = 1024,
                            .measured_seconds = 10e-6};
  CollectiveEstimate predicted{.seconds = {.value = 11e-6, .low = 9e-6, .high = 13e-6}};
  predicted.choice.chosen.algorithm = &collective_algorithms().front();
  const std::string line = scored_between_nodes_row({.row = &row, .predicted = &predicted});
  const auto commas = [](const std::string& text) { return std::count(text.begin(), text.end(), ','); };
  EXPECT_EQ(commas(line), commas(scored_between_nodes_header()) + 1);  // one is inside the quoted source
  EXPECT_EQ(line.find("7,\"lab, one\",h100_ib_rail,2,8,all_reduce,1024,check,"), 0U) << line;
}

}  // namespace foretoken::communication_report_test
