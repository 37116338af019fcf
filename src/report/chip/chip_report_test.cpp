#include "report/chip/chip_report.h"

#include <sstream>

#include <gtest/gtest.h>

namespace foretoken::chip_report_test {

const ConvLayer wide_conv{.name = "wide",
                          .batch = 3,
                          .channels = 64,
                          .filters = 64,
                          .height = 224,
                          .width = 224,
                          .filter_rows = 3,
                          .filter_columns = 3,
                          .padding = 1};

RowStationaryReport eyeriss_report(const std::string& name) {
  RowStationaryReport report{.chip = eyeriss_v1(FORETOKEN_SOURCE_DIR "/data")};
  ConvLayer layer = wide_conv;
  layer.name = name;
  report.rows.push_back({.layer = layer, .count = 2, .result = estimate_row_stationary(report.chip, layer)});
  report.rows.push_back({.layer = {.name = "tall"}, .why_not = "its filter has 15 rows, the array 12"});
  return report;
}

NvdlaReport nvdla_report(const NvdlaConfiguration& configuration) {
  NvdlaReport report{.configuration = configuration};
  const NvdlaLayer layer{.convolution = wide_conv, .repeats = 2};
  report.rows.push_back({.layer = layer, .time = nvdla_layer_time(configuration, layer)});
  return report;
}

constexpr NvdlaConfiguration small_nvdla{
    .macs = 64, .convolution_buffer = Bytes(128 * kibi), .dram = BytesPerSecond(1e9), .clock = Hertz(1e9)};

void expect_narrow(const std::string& text) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 100u) << line;
}

TEST(ChipReport, fits_a_hundred_columns) {
  expect_narrow(
      row_stationary_text(eyeriss_report("a layer whose name is longer than the table has room for, surely")));
  expect_narrow(nvdla_text(nvdla_report(small_nvdla)));
}

TEST(ChipReport, a_layer_that_cannot_run_says_why_and_the_total_leaves_it_out) {
  const RowStationaryReport report = eyeriss_report("wide");
  EXPECT_NE(row_stationary_text(report).find("tall cannot run: its filter has 15 rows"), std::string::npos);
  const Json json = row_stationary_json(report);
  const JsonView view(json, "report");
  EXPECT_EQ(view.at("total").at("layers_left_out").integer(), 1);
  EXPECT_DOUBLE_EQ(view.at("total").at("total_seconds").number(),
                   2 * view.at("layers").items().front().at("total_seconds").number());
  EXPECT_FALSE(view.at("layers").items().back().has("total_seconds"));
}

TEST(ChipReport, says_what_bounds_a_layer) {
  EXPECT_NE(row_stationary_text(eyeriss_report("wide")).find("waits for inputs and partial sums"), std::string::npos);
  EXPECT_NE(nvdla_text(nvdla_report(small_nvdla)).find("multipliers"), std::string::npos);
  NvdlaConfiguration slow_memory = small_nvdla;
  slow_memory.dram = BytesPerSecond(1e6);
  EXPECT_NE(nvdla_text(nvdla_report(slow_memory)).find("DRAM, inputs read 2 times"), std::string::npos)
      << nvdla_text(nvdla_report(slow_memory));
}

TEST(ChipReport, few_multipliers_with_work_are_not_rounded_to_none) {
  NvdlaReport report{.configuration = small_nvdla};
  NvdlaLayer depthwise{.convolution = wide_conv};
  depthwise.convolution.groups = 64;
  report.rows.push_back({.layer = depthwise, .time = nvdla_layer_time(small_nvdla, depthwise)});
  EXPECT_NE(nvdla_text(report).find("multipliers, 0.4% busy"), std::string::npos) << nvdla_text(report);
}

}  // namespace foretoken::chip_report_test
