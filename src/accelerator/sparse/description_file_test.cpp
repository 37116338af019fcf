#include "accelerator/sparse/description_file.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace foretoken::description_file_test {

struct Design {
  Problem problem = gemm_problem({.m = 8, .n = 8, .k = 8});
  Architecture architecture{
      .levels = {{.name = "DRAM"}, {.name = "buffer"}, {.name = "MAC", .kind = LevelKind::compute}}};

  SparsityDescription read(std::string_view text) const {
    const Json document = parse_json(text, "zeros.json");
    return read_sparsity(JsonView(document, "zeros.json"), architecture, problem);
  }
  SparsityDescription read_timeloop(std::string_view text) const {
    const Json document = parse_json(text, "zeros.json");
    SparsityDescription sparsity = without_sparsity(architecture, problem);
    read_timeloop_sparsity(JsonView(document, "zeros.json"), architecture, problem, sparsity);
    return sparsity;
  }
  InputProblem complaint(std::string_view text) const {
    try {
      read(text);
    } catch (const InputError& error) {
      return error.problem();
    }
    ADD_FAILURE() << "accepted: " << text;
    return {};
  }
};

TEST(SparsityFile, says_densities_formats_actions_and_energies) {
  const SparsityDescription sparsity = Design().read(R"({
    "densities": {"A": {"distribution": "structured", "nonzeros": 2, "block": 4, "along": "K"},
                  "B": {"distribution": "uniform", "density": 0.5},
                  "Z": 0.25},
    "levels": {"DRAM": {"metadata_word_bits": 4, "metadata_access_bits": 32,
                        "formats": {"A": ["U", {"format": "CP", "word_bits": 2, "dimensions": ["K", "M"]}]},
                        "energy_pj": {"metadata_read": 3}},
               "buffer": {"reads": [{"action": "skip", "target": "B", "on": ["A"]}]},
               "MAC": {"energy_pj": {"gated_compute": 0.1}}},
    "compute": "gate"})");
  const std::vector<double> word = {1, 1};
  EXPECT_EQ(sparsity.densities[0]->empty_probability(word), 0.5);
  EXPECT_EQ(sparsity.densities[2]->empty_probability(word), 0.75);
  EXPECT_EQ(sparsity.levels[0].metadata_access_bits, 32);
  ASSERT_EQ(sparsity.levels[0].formats[0].size(), 2U);
  EXPECT_EQ(sparsity.levels[0].formats[0][1].kind, FormatKind::coordinates);
  EXPECT_EQ(sparsity.levels[0].formats[0][1].dimensions, (std::vector<int>{2, 0}));
  EXPECT_EQ(sparsity.levels[0].energy.metadata_read_pj, 3);
  ASSERT_EQ(sparsity.reads.size(), 1U);
  EXPECT_EQ(sparsity.reads[0].level, 1);
  EXPECT_EQ(sparsity.levels[2].energy.gated_compute_pj, 0.1);
  EXPECT_EQ(sparsity.compute, ComputeOptimization::gate);
}

TEST(SparsityFile, complaints_say_where_and_what_was_meant) {
  const Design design;
  EXPECT_EQ(design.complaint(R"({"densities": {"A": 1.5}})").path, "densities.A");
  EXPECT_EQ(design.complaint(R"({"levels": {"bufer": {}}})").suggestion, "buffer");
  EXPECT_EQ(design.complaint(R"({"densities": {"A": {"distribution": "bandet", "half_width": 1}}})").suggestion,
            "banded");
  EXPECT_EQ(design.complaint(R"({"levels": {"DRAM": {"formats": {"A": ["CSR"]}}}})").value, "\"CSR\"");
  EXPECT_EQ(design
                .complaint("{\n\"levels\": {\"DRAM\": {\n\"reads\": [{\"action\": \"skip\", \"target\": \"B\", \"on\": "
                           "[]}]}}}")
                .line,
            3);
  EXPECT_FALSE(design.complaint(R"({"levels": {"MAC": {"formats": {"A": ["B"]}}}})").expected.empty());
  EXPECT_FALSE(
      design
          .complaint(R"({"densities": {"A": {"distribution": "structured", "nonzeros": 2, "block": 4, "along": "N"}}})")
          .expected.empty());
}

TEST(SparsityFile, a_role_is_found_in_any_case) {
  const Design design;
  const std::vector<double> word = {1, 1};
  for (const char* role : {"weights", "Weights", "WEIGHTS"}) {
    const std::string text = R"({"densities": {")" + std::string(role) + R"(": 0.25}})";
    EXPECT_EQ(design.read(text).densities[1]->empty_probability(word), 0.75) << role;
    const Json document = parse_json(text, "zeros.json");
    const NamedProblem layer{.name = "fc", .problem = &design.problem};
    EXPECT_NO_THROW(check_network_sparsity(JsonView(document, "zeros.json"), {&layer, 1})) << role;
  }
}

TEST(SparsityFile, a_role_of_several_tensors_gates_each_of_them_by_the_others) {
  Design design;
  design.problem.tensors.insert(design.problem.tensors.begin() + 1, design.problem.tensors.front());
  design.problem.tensors[1].name = "C";  // a second input
  const SparsityDescription sparsity = design.read(
      R"({"levels": {"buffer": {"reads": [{"action": "gate", "target": "inputs", "on": ["weights"]},
                                          {"action": "skip", "target": "inputs", "on": ["Inputs"]}]}}})");
  ASSERT_EQ(sparsity.reads.size(), 4U);
  for (int input = 0; input < 2; ++input) {
    EXPECT_EQ(sparsity.reads[input].options.front().target, input);
    EXPECT_EQ(sparsity.reads[input].options.front().on, std::vector<int>{2});
    EXPECT_EQ(sparsity.reads[2 + input].options.front().target, input);
    EXPECT_EQ(sparsity.reads[2 + input].options.front().on, std::vector<int>{1 - input});
  }
}

TEST(SparsityFile, a_matrix_of_another_size_is_refused) {
  EXPECT_FALSE(Design()
                   .complaint(R"({"densities": {"A": {"distribution": "measured", "file": "no such matrix"}}})")
                   .expected.empty());
}

TEST(SparsityFile, timeloop_writes_with_hyphens_or_underscores) {
  const char* with_hyphens = R"({"targets": [
    {"name": "DRAM", "representation-format": {"data-spaces": [
      {"name": "A", "ranks": [{"format": "UOP", "payload-word-bits": 5, "flattened-rankIDs": [["M", "K"]]},
                              {"format": "RLE", "metadata-word-bits": 4}]}]}},
    {"name": "buffer", "action-optimization": [
      {"type": "skipping", "options": [{"target": "B", "condition-on": ["A"]}, {"target": "A", "condition-on": ["B"]}]}]},
    {"name": "MAC", "compute-optimization": [{"type": "gating"}]}]})";
  std::string with_underscores = with_hyphens;
  for (char& letter : with_underscores) letter = letter == '-' ? '_' : letter;
  for (const std::string_view text : {std::string_view(with_hyphens), std::string_view(with_underscores)}) {
    const SparsityDescription sparsity = Design().read_timeloop(text);
    ASSERT_EQ(sparsity.levels[0].formats[0].size(), 2U);
    EXPECT_EQ(sparsity.levels[0].formats[0][0].dimensions, (std::vector<int>{0, 2}));
    EXPECT_EQ(sparsity.levels[0].formats[0][0].word_bits, 5);
    EXPECT_EQ(sparsity.levels[0].formats[0][1].word_bits, 4);
    ASSERT_EQ(sparsity.reads.size(), 1U);
    EXPECT_EQ(sparsity.reads[0].action, ZeroAction::skip);
    EXPECT_EQ(sparsity.reads[0].options.size(), 2U);
    EXPECT_EQ(sparsity.compute, ComputeOptimization::gate);
  }
}

TEST(SparsityFile, a_description_of_another_design_has_a_fault) {
  const Design design;
  SparsityDescription sparsity = without_sparsity(design.architecture, design.problem);
  EXPECT_EQ(sparsity_fault(sparsity, design.architecture, design.problem), "");
  sparsity.reads.push_back({.level = 2, .options = {{.target = 0, .on = {1}}}});
  EXPECT_NE(sparsity_fault(sparsity, design.architecture, design.problem), "");
  sparsity.reads[0] = {.level = 1, .options = {{.target = 0, .on = {}}}};
  EXPECT_NE(sparsity_fault(sparsity, design.architecture, design.problem), "");
  sparsity.reads.clear();
  sparsity.levels.pop_back();
  EXPECT_NE(sparsity_fault(sparsity, design.architecture, design.problem), "");
}

}  // namespace foretoken::description_file_test
