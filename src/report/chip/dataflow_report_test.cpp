#include "report/chip/dataflow_report.h"

#include <sstream>

#include <gtest/gtest.h>

#include "accelerator/dataflow/dataflow_network.h"

namespace foretoken::dataflow_report_test {

DataflowReport ranked(const std::vector<NetworkLayer>& layers, const DataflowHardware& hardware) {
  const auto library = read_dataflow_library(FORETOKEN_SOURCE_DIR "/data/accelerators/dataflows");
  DataflowReport report{.hardware = hardware};
  for (const NetworkLayer& layer : layers) {
    const DataflowLayer own = dataflow_layer(layer);
    report.rows.push_back({.layer = own,
                           .count = layer.count,
                           .tried = rank_dataflows(own, library, hardware, DataflowObjective::cycles)});
  }
  return report;
}

const NetworkLayer small_conv{.name = "small",
                              .work = ConvShape{.in_channels = 16,
                                                .out_channels = 32,
                                                .height = 14,
                                                .width = 14,
                                                .kernel_height = 3,
                                                .kernel_width = 3,
                                                .padding = 1},
                              .count = 3};

TEST(DataflowReport, fits_a_hundred_columns) {
  NetworkLayer long_name = small_conv;
  long_name.name = "a layer whose name is longer than the table has room for, surely longer than that";
  std::istringstream lines(dataflow_text(ranked({small_conv, long_name}, {.num_pes = 64, .l1_bytes = 40})));
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 100u) << line;
}

TEST(DataflowReport, the_total_counts_equal_layers) {
  const Json json = dataflow_json(ranked({small_conv}, {.num_pes = 64}));
  const JsonView view(json, "report");
  EXPECT_EQ(view.at("total").at("cycles").number(), 3 * view.at("layers").items().front().at("cycles").number());
}

TEST(DataflowReport, a_single_layer_shows_every_dataflow_and_why_some_do_not_fit) {
  const DataflowReport report = ranked({small_conv}, {.num_pes = 64, .l1_bytes = 40});
  const std::string text = dataflow_text(report);
  bool any_left_out = false;
  for (const TriedDataflow& tried : report.rows.front().tried) {
    EXPECT_NE(text.find(tried.name), std::string::npos) << tried.name;
    any_left_out = any_left_out || !tried.why_not.empty();
  }
  EXPECT_TRUE(any_left_out);
  EXPECT_NE(text.find("does not fit: "), std::string::npos) << text;
}

TEST(DataflowReport, a_row_without_a_cost_has_null_for_its_numbers) {
  DataflowReport report{.rows = {{.layer = dataflow_layer(small_conv),
                                  .tried = {{.name = "mine", .cost = {}, .why_not = "it has no clusters"}}}}};
  const Json json = dataflow_json(report);
  const JsonView row = JsonView(json, "report").at("layers").items().front();
  EXPECT_FALSE(row.has("cycles"));
  EXPECT_NE(row.value().find("cycles"), nullptr);
  EXPECT_EQ(row.at("why_not").string(), "it has no clusters");
}

}  // namespace foretoken::dataflow_report_test
