#include "accelerator/formats/problem_json.h"

#include <gtest/gtest.h>

#include "accelerator/mapping_text.h"
#include "base/error.h"

namespace foretoken::problem_json_test {

constexpr const char* strided = R"({"name": "conv1d", "dimensions": {"P": 16, "R": 3, "C": 2}, "tensors": [
  {"name": "Inputs", "index": ["C", "2*P + R"]}, {"name": "Weights", "index": ["C", "R"]},
  {"name": "Outputs", "index": ["P"], "written": true}]})";

Problem parse_problem(const std::string& text) {
  const Json document = parse_json(text, "problem.json");
  return read_problem_json(JsonView(document, "problem.json"));
}

InputProblem problem_complaint(const std::string& text) {
  try {
    parse_problem(text);
    return {};
  } catch (const InputError& error) {
    return error.problem();
  }
}

std::string strided_with(const std::string& old, const std::string& fresh) {
  std::string text = strided;
  return text.replace(text.find(old), old.size(), fresh);
}

Architecture two_levels() {
  return {.levels = {{.name = "DRAM"},
                     {.name = "RF", .instances_x = 4, .depth = 64},
                     {.name = "MAC", .kind = LevelKind::compute, .instances_x = 4}}};
}

TEST(ProblemJson, an_index_is_a_sum_of_dimensions_times_constants) {
  const Problem problem = parse_problem(strided);
  ASSERT_EQ(problem.tensors.size(), 3);
  EXPECT_EQ(problem.tensors[0].ranks[1][0].coefficient, 2);
  EXPECT_EQ(tensor_words(problem.tensors[0], problem), 2 * (2 * 15 + 2 + 1));
  EXPECT_TRUE(problem.tensors[2].written);
  EXPECT_EQ(problem_json(parse_problem(problem_json(problem).dump())).dump(), problem_json(problem).dump());
}

TEST(ProblemJson, named_operators_are_those_of_the_library) {
  EXPECT_EQ(operations(parse_problem(R"({"operator": "gemm", "m": 2, "n": 3, "k": 5, "batch": 7})")), 210);
  const Problem depthwise = parse_problem(
      R"({"operator": "convolution", "in_channels": 8, "out_channels": 8, "groups": 8, "out_width": 4, "kernel_width": 3})");
  EXPECT_EQ(operations(depthwise), 8 * 4 * 3);
  EXPECT_EQ(problem_complaint(R"({"operator": "gem", "m": 2})").suggestion, "gemm");
  EXPECT_FALSE(problem_complaint(R"({"operator": "gemm", "m": 0, "n": 1, "k": 1})").expected.empty());
  EXPECT_FALSE(problem_complaint(R"({"operator": "convolution", "in_channels": 8, "out_channels": 8, "groups": 3,
                                     "out_width": 4, "kernel_width": 3})")
                   .expected.empty());
}

TEST(ProblemJson, what_is_no_affine_index_is_refused) {
  for (const char* index : {"P*R", "2*2*P", "P + 3", "P - R", "", "2*P + X", "P + P"}) {
    EXPECT_FALSE(problem_complaint(strided_with("2*P + R", index)).expected.empty()) << index;
  }
  EXPECT_NE(problem_complaint(strided_with("\"Weights\"", "\"Inputs\"")).expected.find("two tensors"),
            std::string::npos);
  EXPECT_EQ(problem_complaint(strided_with("\"index\"", "\"indx\"")).suggestion, "index");
}

TEST(MappingJson, a_mapping_reads_back_as_it_was_written) {
  const Problem problem = parse_problem(strided);
  const Architecture architecture = two_levels();
  const Json document = parse_json(R"({"levels": [
    {"level": "DRAM", "keep": ["Inputs", "Weights", "Outputs"], "loops": [
      {"dimension": "P", "bound": 6}, {"dimension": "C", "bound": 2, "across": "x"}]},
    {"level": "RF", "keep": ["Weights"], "loops": [{"dimension": "R", "bound": 3}, {"dimension": "P", "bound": 3}]}]})",
                                   "map.json");
  const Mapping mapping = read_mapping_json(JsonView(document, "map.json"), architecture, problem);
  EXPECT_TRUE(mapping_faults(mapping, architecture, problem).empty());
  EXPECT_EQ(mapping.loops[3].last, 1);  // 6 times 3 over 16
  const Json written = mapping_json(mapping, architecture, problem);
  const Mapping again = read_mapping_json(JsonView(written, "map.json"), architecture, problem);
  EXPECT_EQ(mapping_json(again, architecture, problem).dump(), written.dump());
  EXPECT_EQ(again.kept, mapping.kept);
}

TEST(MappingJson, names_nobody_has_are_refused) {
  const Problem problem = parse_problem(strided);
  const Architecture architecture = two_levels();
  const auto complaint = [&](const std::string& entries) {
    const Json document = parse_json("{\"levels\": [" + entries + "]}", "map.json");
    try {
      read_mapping_json(JsonView(document, "map.json"), architecture, problem);
      return InputProblem{};
    } catch (const InputError& error) {
      return error.problem();
    }
  };
  EXPECT_EQ(complaint(R"({"level": "DRM"})").suggestion, "DRAM");
  EXPECT_FALSE(complaint(R"({"level": "MAC"})").expected.empty());
  EXPECT_FALSE(complaint(R"({"level": "RF"}, {"level": "DRAM"})").expected.empty());
  EXPECT_FALSE(complaint(R"({"level": "RF", "keep": ["X"]})").expected.empty());
  EXPECT_FALSE(complaint(R"({"level": "RF", "loops": [{"dimension": "X", "bound": 2}]})").expected.empty());
  EXPECT_FALSE(
      complaint(R"({"level": "RF", "loops": [{"dimension": "P", "bound": 2, "across": "z"}]})").expected.empty());
}

}  // namespace foretoken::problem_json_test
