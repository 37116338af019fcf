#include "accelerator/systolic/scalesim_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"

namespace foretoken::scalesim_files_test {

constexpr std::string_view config_text = R"([general]
run_name = edge

[architecture_presets]
ArrayHeight:    16
ArrayWidth:     8
IfmapSramSzkB:   32
FilterSramSzkB:  64
OfmapSramSzkB:   16
IfmapOffset:    0
Dataflow : ws
Bandwidth : 12, 4
MemoryBanks:   1

[run_presets]
InterfaceBandwidth: USER

[sparsity]
SparsitySupport : false
)";

std::string with(std::string_view text, std::string_view from, std::string_view to) {
  std::string result(text);
  result.replace(result.find(from), from.size(), to);
  return result;
}

InputProblem complaint_about_config(const std::string& text) {
  try {
    parse_scalesim_config(text, "edge.cfg");
  } catch (const InputError& error) {
    return error.problem();
  }
  ADD_FAILURE() << "no complaint";
  return {};
}

InputProblem complaint_about_topology(const std::string& text) {
  try {
    parse_scalesim_topology(text, "net.csv");
  } catch (const InputError& error) {
    return error.problem();
  }
  ADD_FAILURE() << "no complaint";
  return {};
}

TEST(ScaleSimFiles, a_configuration_gives_array_srams_dataflow_and_bandwidth) {
  const ScaleSimConfig config = parse_scalesim_config(config_text, "edge.cfg");
  EXPECT_EQ(config.run_name, "edge");
  EXPECT_EQ(config.array.rows, 16);
  EXPECT_EQ(config.array.columns, 8);
  EXPECT_EQ(config.array.dataflow, Dataflow::weight_stationary);
  EXPECT_EQ(config.array.input_sram_bytes, 32 * 1024);
  EXPECT_EQ(config.array.weight_sram_bytes, 64 * 1024);
  EXPECT_EQ(config.array.output_sram_bytes, 16 * 1024);
  ASSERT_TRUE(config.array.dram);
  EXPECT_EQ(config.array.dram->inputs, 12);
  EXPECT_EQ(config.array.dram->outputs, 12);
}

TEST(ScaleSimFiles, bank_bandwidths_of_the_layout_section_are_those_of_reads) {
  const std::string text =
      std::string(config_text) + "[layout]\nIfmapSRAMBankBandwidth : 20\nFilterSRAMBankBandwidth : 30\n";
  const ScaleSimConfig config = parse_scalesim_config(text, "edge.cfg");
  EXPECT_EQ(config.array.dram->inputs, 20);
  EXPECT_EQ(config.array.dram->weights, 30);
  EXPECT_EQ(config.array.dram->outputs, 12);
}

TEST(ScaleSimFiles, a_calculated_bandwidth_is_none) {
  EXPECT_FALSE(parse_scalesim_config(with(config_text, "USER", "CALC"), "edge.cfg").array.dram);
}

TEST(ScaleSimFiles, complaints_about_a_configuration_name_line_key_and_expectation) {
  const InputProblem size = complaint_about_config(with(config_text, "16\n", "sixteen\n"));
  EXPECT_EQ(size.line, 5);
  EXPECT_EQ(size.value, "sixteen");
  EXPECT_THAT(size.path, testing::HasSubstr("arrayheight"));
  EXPECT_EQ(complaint_about_config(with(config_text, ": ws", ": xs")).expected, "os, ws or is");
  EXPECT_EQ(complaint_about_config(with(config_text, "USER", "BOTH")).expected, "USER or CALC");
  EXPECT_THAT(complaint_about_config(with(config_text, "ArrayWidth", "ArrayWidht")).suggestion,
              testing::HasSubstr("arraywidht"));
  EXPECT_EQ(complaint_about_config(with(config_text, ": false", ": true")).path, "sparsity.SparsitySupport");
  EXPECT_EQ(complaint_about_config(with(config_text, "ArrayWidth: ", "ArrayHeight:")).line, 6);
  EXPECT_EQ(complaint_about_config("x = 1\n").line, 1);
  EXPECT_EQ(complaint_about_config("[general\n").line, 1);
}

TEST(ScaleSimFiles, a_topology_of_convolutions_may_leave_out_the_second_stride) {
  const auto layers = parse_scalesim_topology(
      "Layer name, IFMAP Height, IFMAP Width, Filter Height, Filter Width, Channels, Num Filter, Strides,\n"
      "Conv1, 224, 224, 7, 7, 3, 64, 2,\r\n"
      "\n"
      "Conv2, 56, 56, 3, 5, 64, 64, 1, 2, 1:1,\n",
      "net.csv");
  ASSERT_EQ(layers.size(), 2);
  EXPECT_EQ(layers[0].name, "Conv1");
  EXPECT_EQ(layers[0].layer.gemm(), (GemmSize{.m = 12100, .n = 64, .k = 147}));
  EXPECT_EQ(layers[1].layer.stride_height, 1);
  EXPECT_EQ(layers[1].layer.stride_width, 2);
}

TEST(ScaleSimFiles, a_topology_of_gemms_is_seen_in_its_header) {
  const auto layers = parse_scalesim_topology("Layer, M, N, K,\nffn, 196, 1536, 384,\n", "net.csv");
  ASSERT_EQ(layers.size(), 1);
  EXPECT_EQ(layers[0].layer.gemm(), (GemmSize{.m = 196, .n = 1536, .k = 384}));
}

TEST(ScaleSimFiles, a_depthwise_layer_is_one_layer_per_channel) {
  const auto layers = parse_scalesim_topology("name,h,w,r,s,c,f,stride\nDP1, 14, 14, 3, 3, 5, 1, 1,\n", "net.csv");
  ASSERT_EQ(layers.size(), 5);
  EXPECT_EQ(layers[4].layer.gemm().k, 9);
}

TEST(ScaleSimFiles, complaints_about_a_topology_name_the_line) {
  EXPECT_EQ(complaint_about_topology("Layer, M, N, K\na, 1, 2, 3\nb, 1, two, 3\n").line, 3);
  EXPECT_EQ(complaint_about_topology("Layer, M, N, K\na, 1, 2\n").value, "3 cells");
  EXPECT_EQ(complaint_about_topology("n,h,w,r,s,c,f,t\na, 2, 2, 3, 3, 1, 1, 1\n").path, "layer.filter");
  EXPECT_EQ(complaint_about_topology("n,h,w,r,s,c,f,t\na, 9, 9, 3, 3, 1, 1, 1, 1, 2:4\n").value, "2:4");
  EXPECT_EQ(complaint_about_topology("n,h,w,r,s,c,f,t\nDP, 9, 9, 3, 3, 2000000000, 1, 1, 1\n").line, 2);
  EXPECT_THAT(complaint_about_topology("").expected, testing::HasSubstr("at least one layer"));
}

}  // namespace foretoken::scalesim_files_test
