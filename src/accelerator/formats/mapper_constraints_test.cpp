#include "accelerator/formats/mapper_constraints.h"

#include <gtest/gtest.h>

#include "accelerator/formats/designs.h"
#include "base/error.h"

namespace foretoken::mapper_constraints_test {

Architecture three_levels() {
  return {.levels = {{.name = "DRAM"},
                     {.name = "GLB"},
                     {.name = "RF", .instances_x = 4},
                     {.name = "MAC", .kind = LevelKind::compute, .instances_x = 4}}};
}

Constraints constraints_in(const std::string& json) {
  const Json document = parse_json(json, "constraints.yaml");
  std::vector<TimeloopDirective> directives;
  for (const JsonView& item : JsonView(document, "constraints.yaml").items()) {
    directives.push_back(read_timeloop_directive(item));
  }
  return directive_constraints(directives, three_levels(), gemm_problem({.m = 8, .n = 8, .k = 8}));
}

TEST(MapperConstraints, directives_become_rules_of_the_mapper) {
  const Constraints own = constraints_in(R"([
    {"target": "GLB", "type": "spatial", "factors": "M=1 N<=4 K=0", "permutation": "NK", "split": 1},
    {"target": "GLB", "type": "utilization", "min": 0.5},
    {"target": "RF", "type": "bypass", "keep": ["Z"], "bypass": ["A", "B"]}])");
  EXPECT_EQ(own.source, "constraints.yaml");
  ASSERT_EQ(own.loops.size(), 2);
  EXPECT_TRUE(own.loops[0].spatial);
  EXPECT_EQ(own.loops[0].level, 1);
  ASSERT_EQ(own.loops[0].factors.size(), 3);
  EXPECT_EQ(own.loops[0].factors[0].kind, FactorRule::Kind::exactly);
  EXPECT_EQ(own.loops[0].factors[1].kind, FactorRule::Kind::at_most);
  EXPECT_EQ(own.loops[0].factors[1].value, 4);
  EXPECT_EQ(own.loops[0].factors[2].kind, FactorRule::Kind::remaining);
  EXPECT_EQ(own.loops[0].permutation.size(), 2);
  EXPECT_EQ(own.loops[0].split, 1);
  EXPECT_EQ(own.loops[1].least_utilization, 0.5);
  ASSERT_EQ(own.storage.size(), 3);
  EXPECT_TRUE(own.storage[0].keep);
  EXPECT_FALSE(own.storage[1].keep);
}

TEST(MapperConstraints, names_nobody_has_are_refused) {
  EXPECT_THROW(constraints_in(R"([{"target": "GLX", "type": "temporal"}])"), InputError);
  EXPECT_THROW(constraints_in(R"([{"target": "MAC", "type": "temporal"}])"), InputError);
  EXPECT_THROW(constraints_in(R"([{"target": "GLB", "type": "temporal", "factors": "X=2"}])"), InputError);
  EXPECT_THROW(constraints_in(R"([{"target": "GLB", "type": "temporal", "factors": "M=4,2"}])"), InputError);
  EXPECT_THROW(constraints_in(R"([{"target": "GLB", "type": "bypass", "keep": ["X"]}])"), InputError);
  EXPECT_THROW(constraints_in(R"([{"target": "GLB", "type": "temporal", "no_link_transfer": ["A"]}])"), InputError);
}

TEST(MapperConstraints, shipped_designs_contradict_no_problem) {
  const AcceleratorCatalogue catalogue(FORETOKEN_SOURCE_DIR "/data/accelerators");
  const Problem gemm = gemm_problem({.m = 64, .n = 64, .k = 64});
  for (const std::string& name : catalogue.design_names()) {
    const AcceleratorDesign design = catalogue.design(name).design;
    const Constraints own = design_constraints(design, gemm);
    EXPECT_EQ(constraint_faults(own, design.architecture, gemm), std::vector<std::string>{}) << name;
  }
}

}  // namespace foretoken::mapper_constraints_test
