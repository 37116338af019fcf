// What `foretoken systolic`, `dataflow` and `chip` say, and what they refuse.
#include <algorithm>

#include <gtest/gtest.h>

#include "base/file.h"
#include "base/json.h"
#include "command_test.h"

namespace foretoken::accelerator_commands_test {

class AcceleratorCommands : public CommandTest {
 protected:
  static Json json_of(const std::string& line) {
    const Outcome run = run_foretoken(line + " --json");
    EXPECT_EQ(run.status, 0) << line << "\n" << run.err;
    return parse_json(run.out, line);
  }
  static double total(const std::string& line, const char* key) {
    const Json json = json_of(line);
    return JsonView(json, line).at("total").at(key).number();
  }
  static void refuse(const std::string& line, const std::string& mentions) {
    expect_refused(run_foretoken(line), mentions);
  }
};

const char* const scalesim_config =
    "[general]\nrun_name = small\n[architecture_presets]\nArrayHeight: 8\nArrayWidth: 16\nIfmapSramSzkB: 64\n"
    "FilterSramSzkB: 64\nOfmapSramSzkB: 64\nIfmapOffset: 0\nFilterOffset: 10000000\nOfmapOffset: 20000000\n"
    "Bandwidth: 10\nDataflow: ws\n[run_presets]\nInterfaceBandwidth: CALC\n";

const char* const maestro_mapping =
    "Network small {\n Layer conv1 {\n  Type: CONV\n  Dimensions { K: 8, C: 4, R: 3, S: 3, Y: 10, X: 10 }\n"
    "  Dataflow {\n   SpatialMap(1,1) K;\n   TemporalMap(1,1) C;\n   TemporalMap(3,3) R;\n   TemporalMap(3,3) S;\n"
    "   TemporalMap(3,1) Y;\n   TemporalMap(3,1) X;\n  }\n }\n}\n";

TEST_F(AcceleratorCommands, scale_sims_own_files_say_the_same_as_flags) {
  const std::string config = write("small.cfg", scalesim_config);
  const std::string topology = write("net.csv", "Layer,M,N,K,\nfc,40,50,60,\n");
  EXPECT_EQ(total("systolic --config " + config + " --topology " + topology, "cycles"),
            total("systolic --array 8x16 --dataflow ws --gemm 40x50x60", "cycles"));
}

TEST_F(AcceleratorCommands, the_best_dataflow_of_an_array_is_the_fastest_of_the_three) {
  const std::string line = "systolic --array 16x32 --gemm 200x30x500 --dataflow ";
  const double best = total(line + "best", "cycles");
  EXPECT_EQ(best, std::min({total(line + "os", "cycles"), total(line + "ws", "cycles"), total(line + "is", "cycles")}));
}

TEST_F(AcceleratorCommands, a_narrow_memory_stalls_an_array) {
  const std::string line = "systolic --array 16x16 --gemm 256x256x256 --sram-kb 8,8,8";
  EXPECT_GT(total(line + " --dram-bandwidth 1", "stall_cycles"), total(line + " --dram-bandwidth 64", "stall_cycles"));
}

TEST_F(AcceleratorCommands, more_cores_take_fewer_cycles) {
  const std::string line = "systolic --array 16x16 --gemm 512x512x512 --cores ";
  EXPECT_LT(total(line + "16", "cycles"), total(line + "2x2", "cycles"));
}

TEST_F(AcceleratorCommands, a_layer_list_writes_one_row_each) {
  const std::string csv = path("layers.csv");
  for (const std::string line :
       {"systolic --array 64x64 --network alexnet", "systolic --chip tpu_v3 --network alexnet",
        "dataflow --dataflow ykp_os --network alexnet", "chip --chip eyeriss_v1 --network alexnet",
        "chip --nvdla 64,128,1 --network alexnet"}) {
    const Outcome run = run_foretoken(line + " --csv " + csv);
    EXPECT_EQ(run.status, 0) << line << run.err;
    const std::string text = read_file(csv, 1 << 20);
    EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 9) << line << "\n" << text;
    EXPECT_NE(text.find("\nfc8,"), std::string::npos) << text;
  }
}

TEST_F(AcceleratorCommands, maestros_own_files_are_read) {
  const std::string mapping = write("net.m", maestro_mapping);
  const std::string hardware = write("hw.m", "num_pes: 4\nl1_size_cstr: 10\nnoc_bw_cstr: 16\n");
  const Outcome run = run_foretoken("dataflow --mapping " + mapping + " --hardware " + hardware);
  EXPECT_EQ(run.status, 0) << run.err;
  EXPECT_NE(run.out.find("conv1 does not fit: needs"), std::string::npos) << run.out;
  refuse("dataflow --mapping " + mapping + " --hardware " + hardware + " --pes 9", "--pes");
  refuse("dataflow --mapping " + mapping + " --network alexnet", "--network");
}

TEST_F(AcceleratorCommands, the_best_dataflow_is_no_slower_than_any_that_fits) {
  const std::string line = "dataflow --conv 32x64x14x14x3 --pes 64";
  const Json json = json_of(line);
  const JsonView layer = JsonView(json, line).at("layers").items().front();
  ASSERT_EQ(layer.at("ranking").items().size(), 6u);
  for (const JsonView& tried : layer.at("ranking").items()) {
    if (tried.has("why_not")) continue;
    EXPECT_GE(tried.at("cycles").number(), layer.at("cycles").number()) << tried.at("dataflow").string();
  }
}

TEST_F(AcceleratorCommands, eyeriss_is_as_measured) {
  const Json json = json_of("chip --chip eyeriss_v1 --network alexnet --batch 4");
  double convolutions = 0;
  for (const JsonView& layer : JsonView(json, "chip").at("layers").items()) {
    if (layer.at("layer").string().starts_with("conv")) convolutions += layer.at("processing_seconds").number();
  }
  EXPECT_NEAR(convolutions, 0.1035, 0.002) << "JSSC 52(1) 2017, table V: 103.5 ms";
}

TEST_F(AcceleratorCommands, zeros_save_traffic_and_energy_but_no_processing) {
  const std::string line = "chip --chip eyeriss_v1 --conv 64x64x56x56x3 --zeros ";
  EXPECT_LT(total(line + "0.8", "dram_bytes"), total(line + "0.2", "dram_bytes"));
  EXPECT_LT(total(line + "0.8", "energy_joules"), total(line + "0.2", "energy_joules"));
  EXPECT_EQ(total(line + "0.8", "processing_seconds"), total(line + "0.2", "processing_seconds"));
}

TEST_F(AcceleratorCommands, a_layer_that_a_chip_cannot_run_says_why_and_the_others_still_run) {
  const std::string network = write("net.json", R"({"name": "n", "source": "s", "layers": [
        {"name": "tall", "conv": {"in_channels": 3, "out_channels": 8, "height": 64, "kernel_height": 15}},
        {"name": "fits", "conv": {"in_channels": 3, "out_channels": 8, "height": 64, "kernel_height": 3}}]})");
  const Outcome run = run_foretoken("chip --chip eyeriss_v1 --network " + network);
  EXPECT_EQ(run.status, 0) << run.err;
  EXPECT_NE(run.out.find("tall cannot run: "), std::string::npos) << run.out;
  EXPECT_NE(run.out.find("Not included: 1 layer"), std::string::npos) << run.out;
  refuse("chip --chip eyeriss_v1 --conv 3x8x64x64x15", "scratch pads");
}

TEST_F(AcceleratorCommands, unknown_names_suggest_the_nearest) {
  refuse("systolic --chip tpu_v5 --gemm 8x8x8", "did you mean tpu_v");
  refuse("systolic --network resnet5", "did you mean resnet50");
  refuse("systolic --dataflow oss --gemm 8x8x8", "did you mean os");
  refuse("dataflow --dataflow kcp --gemm 8x8x8", "did you mean kcp_ws");
  refuse("chip --chip eyeris_v1 --gemm 8x8x8", "did you mean eyeriss_v1");
}

TEST_F(AcceleratorCommands, work_is_given_once) {
  for (const std::string command : {"systolic", "dataflow", "chip --chip eyeriss_v1"}) {
    refuse(command, "none of them");
    refuse(command + " --gemm 8x8x8 --network alexnet", "several of them");
  }
  refuse("systolic --topology " + write("net.csv", "Layer,M,N,K,\nfc,1,2,3,\n") + " --gemm 8x8x8", "--gemm");
}

TEST_F(AcceleratorCommands, flags_that_would_change_nothing_are_refused) {
  refuse("systolic --chip tpu_v3 --array 8x8 --gemm 8x8x8", "--array");
  refuse("systolic --config " + write("small.cfg", scalesim_config) + " --array 8x8 --gemm 8x8x8", "--array");
  refuse("dataflow --dataflow best --reading maestro --gemm 8x8x8", "--reading");
  refuse("dataflow --dataflow kcp_ws --objective energy --gemm 8x8x8", "--objective");
  refuse("chip --chip eyeriss_v1 --clock-mhz 5 --gemm 8x8x8", "--clock-mhz");
  refuse("chip --nvdla 64,128,1 --zeros 0.5 --gemm 8x8x8", "--zeros");
  refuse("chip --nvdla 64,128,1 --chip eyeriss_v1 --gemm 8x8x8", "both");
  refuse("chip --gemm 8x8x8", "--chip");
}

TEST_F(AcceleratorCommands, sizes_out_of_range_say_what_is_expected) {
  for (const std::string array : {"8", "8x8x8", "0x8", "8x99999999", "axb", ""}) {
    expect_refused(run_foretoken({"systolic", "--gemm", "8x8x8", "--array", array}), "--array");
  }
  refuse("systolic --gemm 8x8x8 --sram-kb 1,2", "--sram-kb");
  refuse("systolic --gemm 8x8x8 --dram-bandwidth 0", "--dram-bandwidth");
  refuse("systolic --gemm 8x8x8 --cores 0", "--cores");
  refuse("systolic --gemm 8x8x8 --cores 4 --sram-kb 8", "--sram-kb");
  refuse("systolic --gemm 8x8", "MxNxK");
  refuse("systolic --conv 3x8x9x9x3x1x2", "groups that divide");
  refuse("dataflow --gemm 8x8x8 --pes 0", "--pes");
  refuse("chip --nvdla 64,128 --gemm 8x8x8", "2048,512,20");
  refuse("chip --chip eyeriss_v1 --gemm 8x8x8 --zeros 1.5", "--zeros");
}

}  // namespace foretoken::accelerator_commands_test
