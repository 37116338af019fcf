#include "accelerator/mapping.h"

#include <gtest/gtest.h>

#include "accelerator/evaluator.h"
#include "accelerator/mapping_text.h"

namespace foretoken::accelerator_mapping_test {

TEST(MappingFaults, more_loops_than_the_evaluator_holds_are_a_fault_of_the_mapping) {
  Problem problem{.name = "copy"};
  Mapping mapping{.kept = {0b1}};
  for (int d = 0; d < 4; ++d) {
    problem.dimensions.push_back({.name = std::string(1, static_cast<char>('A' + d)), .size = int64_t{1} << 25});
    for (int i = 0; i < 25; ++i) mapping.loops.push_back({.dimension = d, .bound = 2, .last = 2});
  }
  problem.tensors = {{.name = "Z", .ranks = {{{.dimension = 0}}, {{.dimension = 1}}}, .written = true}};
  const Architecture chip{.name = "chip",
                          .levels = {{.name = "memory"}, {.name = "multiplier", .kind = LevelKind::compute}}};
  Evaluation result;
  EXPECT_FALSE(MappingEvaluator(chip, problem).evaluate(mapping, result));
  const std::vector<std::string> faults = mapping_faults(mapping, chip, problem);
  ASSERT_EQ(faults.size(), 1U);
  EXPECT_EQ(faults.front(), "100 loops run more than once; at most 96");
}

}  // namespace foretoken::accelerator_mapping_test
