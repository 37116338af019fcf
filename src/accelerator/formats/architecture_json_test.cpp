#include "accelerator/formats/architecture_json.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace foretoken::architecture_json_test {

constexpr const char* small_tree = R"({"name": "small", "clock_ghz": 0.5, "technology_nm": 45, "levels": [
  {"name": "MAC", "inside": "PE", "kind": "compute", "component": "intmac", "grid": [1, 4]},
  {"name": "Weights", "inside": "PE", "component": "regfile", "grid": [1, 4], "depth": 16, "keep": ["weights"]},
  {"name": "Sums", "inside": "PE", "component": "regfile", "grid": [1, 4], "depth": 8, "keep": ["outputs"],
   "energy": {"read_pj": 1, "fill_pj": 2}, "area_um2": 30},
  {"name": "DRAM", "component": "LPDDR4", "words_per_access": 8, "bandwidth": {"shared": 4}},
  {"name": "PE", "inside": "GLB", "kind": "network", "grid": [3, 2]},
  {"name": "GLB", "inside": "DRAM", "component": "SRAM", "words_per_access": 8, "capacity_bytes": 4096, "buffers": 2}
]})";

AcceleratorDesign parse_design(const std::string& text) {
  const Json document = parse_json(text, "design.json");
  return read_architecture_json(JsonView(document, "design.json"));
}

InputProblem design_complaint(const std::string& old, const std::string& fresh) {
  std::string text = small_tree;
  const size_t at = text.find(old);
  EXPECT_NE(at, std::string::npos) << old;
  text.replace(at, old.size(), fresh);
  try {
    parse_design(text);
    return {};
  } catch (const InputError& error) {
    return error.problem();
  }
}

TEST(ArchitectureJson, a_tree_becomes_levels_with_the_multipliers_last) {
  const AcceleratorDesign design = parse_design(small_tree);
  const Architecture& own = design.architecture;
  EXPECT_EQ(level_names(own), (std::vector<std::string>{"DRAM", "GLB", "PE", "Weights", "Sums", "MAC"}));
  EXPECT_EQ(own.clock_hz, 5e8);
  EXPECT_EQ(own.levels[1].depth, 512);
  EXPECT_EQ(words_held(own.levels[1]), 2048);
  EXPECT_EQ(own.levels[2].instances_x, 3);
  EXPECT_EQ(own.levels[3].instances_y, 8);
  EXPECT_EQ(own.levels[4].energy.update_pj, 2);
  EXPECT_EQ(design.energies_given, (std::vector<bool>{false, false, false, false, true, false}));
}

TEST(ArchitectureJson, a_written_design_reads_back_as_itself) {
  const AcceleratorDesign design = parse_design(small_tree);
  const std::string text = architecture_json(design).dump();
  EXPECT_EQ(architecture_json(parse_design(text)).dump(), text);
  EXPECT_EQ(parse_design(text).architecture.levels[3].instances_y, 8);
}

TEST(ArchitectureJson, meshes_rows_and_spreads_read_back_as_themselves) {
  const AcceleratorDesign own = parse_design(R"({"name": "package", "levels": [
    {"name": "DRAM", "component": "DDR4", "rows": {"row_bytes": 8192, "banks": 16, "switch_ns": 27.5, "refresh_share": 0.04}},
    {"name": "buffer", "inside": "DRAM", "component": "SRAM", "depth": 64, "spread": ["reduced", "output_channels"],
     "mesh": {"words_per_cycle": 12.5, "ports": 2, "hop_cycles": 20, "hop_pj_per_word": 9}},
    {"name": "MAC", "inside": "buffer", "kind": "compute", "component": "intmac", "grid": [4, 4], "operation_cycles": 8}]})");
  EXPECT_EQ(own.architecture.levels[0].rows.banks, 16);
  EXPECT_EQ(own.architecture.levels[1].mesh.ports, 2);
  EXPECT_EQ(operations_per_cycle(own.architecture), 2);
  const std::string written = architecture_json(own).dump(2);
  EXPECT_EQ(architecture_json(parse_design(written)).dump(2), written);
  EXPECT_NE(written.find("switch_ns"), std::string::npos);
  EXPECT_NE(written.find("output_channels"), std::string::npos);
}

TEST(ArchitectureJson, a_role_that_nobody_knows_is_refused) {
  EXPECT_EQ(design_complaint(R"("grid": [3, 2])", R"("grid": [3, 2], "spread": ["output_chanels"])").suggestion,
            "output_channels");
}

TEST(ArchitectureJson, a_tree_that_is_none_is_refused_by_name) {
  EXPECT_EQ(design_complaint(R"("inside": "GLB")", R"("inside": "GLD")").suggestion, "GLB");
  EXPECT_NE(design_complaint(R"("inside": "GLB", )", "").expected.find("outermost level already"), std::string::npos);
  EXPECT_NE(design_complaint(R"("name": "DRAM")", R"("name": "DRAM", "inside": "GLB")").expected.find("circle"),
            std::string::npos);
  EXPECT_NE(design_complaint(R"("inside": "DRAM")", R"("inside": "PE")").expected.find("circle"), std::string::npos);
  EXPECT_NE(design_complaint(R"("Weights", "inside": "PE")", R"("Weights", "inside": "PE", "kind": "compute")")
                .expected.find("MAC is another"),
            std::string::npos);
  EXPECT_NE(
      design_complaint(R"("kind": "compute")", R"("kind": "storage", "keep": ["inputs"])").expected.find("compute"),
      std::string::npos);
  EXPECT_NE(design_complaint(R"(, "keep": ["weights"])", "").expected.find("`keep`"), std::string::npos);
  EXPECT_EQ(design_complaint(R"("name": "Sums")", R"("name": "Weights")").expected, "a name that no other level has");
}

TEST(ArchitectureJson, a_level_without_energy_or_component_is_refused) {
  EXPECT_NE(design_complaint(R"("component": "intmac", )", "").expected.find("energy"), std::string::npos);
  EXPECT_NE(design_complaint(R"("read_pj": 1, )", "").expected.find("read_pj"), std::string::npos);
}

TEST(ArchitectureJson, a_slip_of_a_key_is_named) {
  EXPECT_EQ(design_complaint(R"("word)", R"("wrd)").suggestion, "words_per_access");
  EXPECT_EQ(design_complaint("\"network\"", "\"netwrk\"").suggestion, "network");
  EXPECT_EQ(design_complaint("\"shared\"", "\"share\"").suggestion, "shared");
  EXPECT_FALSE(design_complaint("[3, 2]", "[3]").expected.empty());
  EXPECT_FALSE(design_complaint("[3, 2]", "[0, 2]").expected.empty());
  EXPECT_FALSE(design_complaint("4096", "4").expected.empty());
  EXPECT_FALSE(design_complaint(R"("capacity_bytes")", R"("depth": 3, "capacity_bytes")").expected.empty());
}

TEST(ArchitectureJson, a_converter_without_bits_is_refused) {
  const auto complaint = [](const std::string& converter) {
    return design_complaint(R"("area_um2": 30)", R"("area_um2": 30, "converter": )" + converter);
  };
  EXPECT_EQ(complaint(R"({"extra_pj": 5})").path, "levels[2].converter");
  EXPECT_EQ(complaint(R"({"bits": 8, "extra_pj": 5})").path, "");
}

TEST(ArchitectureJson, a_channel_of_one_input_is_one_whatever_the_other_inputs_are) {
  Problem problem = gemm_problem({.m = 4, .n = 4, .k = 4});
  const uint32_t k = 1U << find_dimension(problem, "K"), m = 1U << find_dimension(problem, "M");
  EXPECT_EQ(dimensions_allowed({.spread = {"input_channels"}}, problem), k);
  // Beside A[m, k] another input, at m + k.
  ProblemTensor other = problem.tensors[find_tensor(problem, "A")];
  other.name = "slid";
  other.ranks = {{{.dimension = find_dimension(problem, "M")}, {.dimension = find_dimension(problem, "K")}}};
  problem.tensors.push_back(other);
  EXPECT_EQ(dimensions_allowed({.spread = {"input_channels"}}, problem), k);
  EXPECT_EQ(dimensions_allowed({.spread = {"positions"}}, problem), m);
}

TEST(ArchitectureJson, groups_and_batches_of_products_are_channels_on_both_sides) {
  const auto bits = [](const Problem& problem, std::initializer_list<const char*> names) {
    uint32_t all = 0;
    for (const char* name : names) all |= 1U << find_dimension(problem, name);
    return all;
  };
  const Problem depthwise = convolution_problem({.in_channels = 32, .out_channels = 32, .out_width = 7, .groups = 32});
  EXPECT_EQ(dimensions_allowed({.spread = {"input_channels"}}, depthwise), bits(depthwise, {"C", "G"}));
  EXPECT_EQ(dimensions_allowed({.spread = {"output_channels"}}, depthwise), bits(depthwise, {"M", "G"}));
  EXPECT_EQ(dimensions_allowed({.spread = {"positions"}}, depthwise), bits(depthwise, {"N", "P", "Q", "G"}));
  EXPECT_EQ(dimensions_allowed({.spread = {"reduced"}}, depthwise), bits(depthwise, {"C", "R", "S"}));
  const Problem products = gemm_problem({.m = 4, .n = 4, .k = 4, .batch = 8});
  EXPECT_EQ(dimensions_allowed({.spread = {"input_channels"}}, products), bits(products, {"K", "H"}));
  EXPECT_EQ(dimensions_allowed({.spread = {"output_channels"}}, products), bits(products, {"N", "H"}));
}

TEST(ArchitectureJson, tensors_are_allowed_by_name_or_by_role) {
  const Problem gemm = gemm_problem({.m = 2, .n = 2, .k = 2});  // A, B, Z
  const auto bits = [&](std::initializer_list<const char*> names) {
    uint32_t all = 0;
    for (const char* name : names) all |= 1U << find_tensor(gemm, name);
    return all;
  };
  EXPECT_EQ(tensors_allowed({}, gemm), bits({"A", "B", "Z"}));
  EXPECT_EQ(tensors_allowed({.keep = {"inputs"}}, gemm), bits({"A"}));
  EXPECT_EQ(tensors_allowed({.keep = {"weights", "Z"}}, gemm), bits({"B", "Z"}));
  EXPECT_EQ(tensors_allowed({.bypass = {"outputs"}}, gemm), bits({"A", "B"}));
}

}  // namespace foretoken::architecture_json_test
