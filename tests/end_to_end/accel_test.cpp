// foretoken accel as users run it: designs, files, wrong files, designs as devices.
#include <gtest/gtest.h>

#include "base/file.h"
#include "base/json.h"
#include "command_test.h"

namespace foretoken::accel_test {

const std::string chain_design = R"({"name": "chain", "levels": [
  {"name": "DRAM", "component": "LPDDR4", "words_per_access": 8, "energy": {"read_pj": 100, "fill_pj": 100}},
  {"name": "buffer", "inside": "DRAM", "component": "SRAM", "depth": 16, "energy": {"read_pj": 1, "fill_pj": 1}},
  {"name": "mac", "inside": "buffer", "kind": "compute", "component": "intmac", "grid": [4, 1],
   "energy": {"compute_pj": 0.2}}]})";

class Accel : public CommandTest {
 protected:
  Json answer(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "accel");
    arguments.push_back("--json");
    const Outcome run = run_foretoken(arguments);
    EXPECT_EQ(run.status, 0) << run.err;
    return parse_json(run.out, "answer");
  }
  // A mapping of a 4x4x4 product on the design above.
  Outcome with_mapping(const std::string& levels) {
    write("chain.json", chain_design);
    write("map.json", "{\"levels\": [" + levels + "]}");
    return run_foretoken({"accel", "--arch", path("chain.json"), "--gemm", "4x4x4", "--mapping", path("map.json")});
  }
};

TEST_F(Accel, evaluates_a_mapping_of_ones_own_design) {
  const Outcome run = with_mapping(
      R"({"level": "DRAM", "keep": ["A", "B", "Z"], "loops": [{"dimension": "M", "bound": 4}]},
         {"level": "buffer", "keep": ["Z"], "loops": [{"dimension": "K", "bound": 4},
                                                      {"dimension": "N", "bound": 4, "across": "x"}]})");
  EXPECT_EQ(run.status, 0) << run.err;
  EXPECT_NE(run.out.find("cycles       16"), std::string::npos) << run.out;
}

TEST_F(Accel, finds_the_same_mapping_on_any_number_of_threads) {
  const std::vector<std::string> asked = {"--arch", "gemm_array_16x16", "--gemm", "96x128x80", "--tries", "3000"};
  auto with_threads = [&](const std::string& threads) {
    std::vector<std::string> arguments = asked;
    arguments.insert(arguments.end(), {"--threads", threads});
    return answer(arguments).dump();
  };
  EXPECT_EQ(with_threads("1"), with_threads("3"));
}

TEST_F(Accel, wrong_mappings_are_named) {
  expect_refused(
      with_mapping(R"({"level": "DRAM", "keep": ["A", "B", "Z"], "loops": [{"dimension": "M", "bound": 4}]})"),
      "dimension N of size 4 has no loop");
  expect_refused(with_mapping(R"({"level": "DRAM", "keep": ["A", "B", "Z"], "loops": [
                     {"dimension": "M", "bound": 4}, {"dimension": "N", "bound": 4}, {"dimension": "K", "bound": 2}]})"),
                 "the loops over K cover 2 of 4");
  expect_refused(with_mapping(R"({"level": "DRAM", "keep": ["A", "B", "Z"], "loops": []},
                                 {"level": "buffer", "keep": ["A", "B"], "loops": [{"dimension": "M", "bound": 4},
                                  {"dimension": "N", "bound": 4}, {"dimension": "K", "bound": 4}]})"),
                 "the tiles at buffer need 32 words");
  expect_refused(with_mapping(R"({"level": "DRAM", "keep": ["A", "B", "Zed"], "loops": []})"), "Z");
  expect_refused(with_mapping(R"({"level": "DRAM", "keep": ["A", "B", "Z"], "loops": [
                     {"dimension": "M", "bound": 4}, {"dimension": "K", "bound": 4}]},
                     {"level": "buffer", "loops": [{"dimension": "N", "bound": 4, "across": "y"}]})"),
                 "spreads work over 1 x 4 instances but has 4 x 1 below it");
}

TEST_F(Accel, a_circle_of_levels_is_refused) {
  write("circle.json", R"({"name": "circle", "levels": [{"name": "a", "inside": "b", "component": "SRAM"},
                           {"name": "b", "inside": "a", "component": "SRAM"},
                           {"name": "mac", "inside": "b", "kind": "compute", "component": "intmac"}]})");
  expect_refused(run_foretoken({"accel", "--arch", path("circle.json"), "--gemm", "4x4x4"}), "inside");
}

TEST_F(Accel, contradictory_constraints_are_named) {
  write("constraints.yaml",
        "mapspace_constraints:\n"
        "  targets:\n"
        "  - {target: GLB, type: dataspace, keep: [A], bypass: [A]}\n"
        "  - {target: RF, type: temporal, factors: M=3}\n");
  const Outcome run = run_foretoken({"accel", "--arch", "gemm_array_16x16", "--gemm", "16x16x16", "--remainders",
                                     "never", "--constraints", path("constraints.yaml")});
  expect_refused(run, "A");
}

TEST_F(Accel, a_space_too_large_to_finish_answers_in_time_with_its_gap) {
  const Json result = answer({"--arch", "gemm_array_16x16", "--gemm", "1048576x1048576x1048576", "--tries",
                              "1000000000", "--time-limit", "0.2"});
  const JsonView search = JsonView(result, "answer").at("search");
  EXPECT_TRUE(search.at("out_of_time").boolean());
  EXPECT_GT(search.at("log2_points").number(), 40);
  EXPECT_GT(search.at("gap").number(), 0);
}

TEST_F(Accel, a_missing_energy_is_an_error_never_a_default) {
  write("arch.yaml",
        "architecture:\n  version: 0.4\n  nodes:\n"
        "  - !Component {name: buffer, class: SRAM, attributes: {depth: 64, width: 8, datawidth: 8}}\n"
        "  - !Component {name: mac, class: intmac, attributes: {width: 8}}\n");
  write("ert.yaml",
        "ERT:\n  version: 0.4\n  tables:\n"
        "  - {name: system.buffer, actions: [{name: read, energy: 1}, {name: write, energy: 1}]}\n");
  expect_refused(
      run_foretoken({"accel", "--arch", path("arch.yaml"), "--energy-tables", path("ert.yaml"), "--gemm", "2x2x2"}),
      "mac");
}

TEST_F(Accel, a_design_is_a_device_of_the_layers_above) {
  ASSERT_EQ(run_foretoken({"accel", "--arch", "tpu_v3", "--gemm", "256x256x256", "--tries", "500", "--device-file",
                           path("chip.json")})
                .status,
            0);
  const Outcome step = run_foretoken({"step", "--model", "Qwen2.5-0.5B", "--device", path("chip.json"), "--batch", "4",
                                      "--context-len", "128", "--json"});
  ASSERT_EQ(step.status, 0) << step.err;
  EXPECT_NE(step.out.find("\"mapped\""), std::string::npos);
}

TEST_F(Accel, writes_its_figures) {
  const Outcome run = run_foretoken({"accel", "--arch", "gemm_array_16x16", "--gemm", "64x64x64", "--tries", "500",
                                     "--svg", path("a.svg"), "--html", path("a.html"), "--csv", path("a.csv"), "--map",
                                     path("map.yaml"), "--stats", path("stats.txt")});
  ASSERT_EQ(run.status, 0) << run.err;
  for (const char* name : {"a.svg", "a.html", "a.csv", "map.yaml", "stats.txt"}) {
    EXPECT_GT(std::filesystem::file_size(path(name)), 100u) << name;
  }
  // The mapping that was written is read back to the same figures.
  const Json again = answer({"--arch", "gemm_array_16x16", "--gemm", "64x64x64", "--mapping", path("map.yaml")});
  const std::string cycles = "cycles       " + again.find("cycles")->dump(0);
  EXPECT_NE(run.out.find(cycles), std::string::npos) << run.out;
}

TEST_F(Accel, zeros_of_a_network_are_counted_by_layer) {
  const std::string file = FORETOKEN_SOURCE_DIR "/examples/sparse_alexnet.json";
  const std::vector<std::string> question = {
      "--arch", "eyeriss_168_timeloop", "--network", "alexnet", "--sparsity", file, "--tries", "400"};
  const Json found = answer(question);
  EXPECT_LT(found.find("total")->find("energy_pj")->number(), found.find("dense")->find("energy_pj")->number());
  double energy = 0;
  for (const Json& layer : found.find("layers")->items()) {
    energy += layer.find("count")->number() * layer.find("sparse")->find("energy_pj")->number();
  }
  EXPECT_NEAR(energy / found.find("total")->find("energy_pj")->number(), 1, 1e-9);
  write("wrong.json", R"({"layers": {"conv7": {"inputs": 0.5}}})");
  expect_refused(run_foretoken({"accel", "--arch", "eyeriss_168_timeloop", "--network", "alexnet", "--sparsity",
                                path("wrong.json")}),
                 "conv1");
}

TEST_F(Accel, attention_of_a_model_is_fused_where_that_pays) {
  const std::vector<std::string> model = {"--arch",  "tpu_v4",      "--model", "Qwen3-0.6B", "--phase",
                                          "prefill", "--input-len", "256",     "--tries",    "200"};
  std::vector<std::string> fused = model;
  fused.insert(fused.end(), {"--fuse", "cmem", "--objective", "energy"});
  const Json found = answer(fused);
  EXPECT_LE(found.find("together")->find("energy_pj")->number(), found.find("apart")->find("energy_pj")->number());
  bool has_pair = false;
  for (const Json& group : found.find("groups")->items())
    has_pair = has_pair || group.find("layers")->items().size() == 2;
  EXPECT_TRUE(has_pair);
}

TEST_F(Accel, work_that_is_missing_or_doubled_is_asked_for) {
  expect_refused(run_foretoken({"accel", "--gemm", "4x4x4"}), "--arch");
  expect_refused(run_foretoken({"accel", "--arch", "gemm_array_16x16"}), "--problem");
  expect_refused(run_foretoken({"accel", "--arch", "gemm_array_16x16", "--gemm", "4x4x4", "--network", "alexnet"}),
                 "not several");
  expect_refused(run_foretoken({"accel", "--arch", "gemm_aray_16x16", "--gemm", "4x4x4"}), "gemm_array_16x16");
  expect_refused(run_foretoken({"accel", "--arch", "gemm_array_16x16", "--network", "resnet5"}), "resnet50");
  expect_refused(run_foretoken({"accel", "--arch", "gemm_array_16x16", "--network", "alexnet", "--fuse", "GLBs"}),
                 "GLB");
}

TEST_F(Accel, files_that_do_not_hold_what_their_flag_asks_for_are_refused) {
  write("empty.yaml", "");
  const std::vector<std::string> asked = {"accel", "--arch", "gemm_array_16x16", "--gemm", "16x16x16"};
  for (const std::string flag : {"--energy-tables", "--constraints"}) {
    std::vector<std::string> arguments = asked;
    arguments.insert(arguments.end(), {flag, path("empty.yaml")});
    expect_refused(run_foretoken(arguments), flag);
  }
  expect_refused(run_foretoken({"validate", "accel", "--cases", "nope"}), "filters");
}

TEST_F(Accel, a_tensor_without_a_home_is_refused) {
  write("homeless.yaml", "constraints:\n  targets:\n  - {target: DRAM, type: dataspace, bypass: [A]}\n");
  expect_refused(run_foretoken({"accel", "--arch", "gemm_array_16x16", "--gemm", "16x16x16", "--constraints",
                                path("homeless.yaml")}),
                 "A must pass by DRAM");
  expect_refused(with_mapping(R"({"level": "DRAM", "keep": ["B", "Z"], "loops": [{"dimension": "M", "bound": 4}]},
                                 {"level": "buffer", "keep": ["A"], "loops": [{"dimension": "K", "bound": 4},
                                                                              {"dimension": "N", "bound": 4}]})"),
                 "A comes from nowhere");
}

TEST_F(Accel, a_misspelt_tensor_of_a_design_is_refused) {
  std::string text = chain_design;
  text.replace(text.find("\"depth\": 16"), 0, "\"keep\": [\"outptus\"], ");
  write("typo.json", text);
  expect_refused(run_foretoken({"accel", "--arch", path("typo.json"), "--gemm", "4x4x4"}), "outputs");
}

TEST_F(Accel, constraints_that_leave_little_of_the_array_are_met) {
  write("narrow.yaml",
        "constraints:\n  targets:\n"
        "  - {target: DRAM, type: temporal, factors: [M=1, N<=4]}\n"
        "  - {target: GLB, type: temporal, factors: [N=1]}\n"
        "  - {target: GLB, type: spatial, factors: [N<=4]}\n"
        "  - {target: RF, type: temporal, factors: [M<=2]}\n"
        "  - {target: RF, type: dataspace, bypass: [A]}\n");
  for (const std::string remainders : {"never", "few", "always"}) {
    const Json result = answer({"--arch", "gemm_array_16x16", "--gemm", "64x32x128", "--tries", "3000", "--remainders",
                                remainders, "--constraints", path("narrow.yaml")});
    EXPECT_GT(result.find("cycles")->number(), 0) << remainders;
  }
}

TEST_F(Accel, a_device_file_whose_halves_disagree_is_refused) {
  ASSERT_EQ(run_foretoken({"accel", "--arch", "tpu_v3", "--gemm", "256x256x256", "--tries", "500", "--device-file",
                           path("chip.json")})
                .status,
            0);
  std::string text = read_file(path("chip.json"), 1 << 20);
  const std::string clock = "\"clock_ghz\": 0.94";
  ASSERT_NE(text.find(clock), std::string::npos);
  text.replace(text.find(clock), clock.size(), "\"clock_ghz\": 1.88");
  write("faster.json", text);
  expect_refused(run_foretoken({"step", "--model", "Qwen2.5-0.5B", "--device", path("faster.json"), "--batch", "4"}),
                 "as the design in the file gives");
}

TEST_F(Accel, a_network_beside_a_problem_of_timeloop_is_refused) {
  write("problem.yaml",
        "problem:\n  shape:\n    name: copy\n    dimensions: [M]\n    data_spaces:\n"
        "    - {name: A, projection: [[[M]]]}\n    - {name: Z, projection: [[[M]]], read_write: true}\n"
        "  instance: {M: 4}\n");
  expect_refused(run_foretoken({"accel", "--arch", "gemm_array_16x16," + path("problem.yaml"), "--network", "alexnet"}),
                 "not both");
}

}  // namespace foretoken::accel_test
