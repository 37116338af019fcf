#include "accelerator/formats/timeloop_mapping.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "accelerator/evaluator.h"
#include "accelerator/formats/designs.h"
#include "accelerator/formats/problem_json.h"
#include "accelerator/formats/timeloop_output.h"
#include "accelerator/mapping_text.h"
#include "accelerator/validate/loop_nest_cases.h"
#include "base/yaml_json.h"

namespace foretoken::timeloop_mapping_test {

std::vector<TimeloopDirective> directives_in(const JsonView& list) {
  std::vector<TimeloopDirective> directives;
  for (const JsonView& item : list.items()) directives.push_back(read_timeloop_directive(item));
  return directives;
}

// The cases that the public tools were run on, each file with its document.
class PublishedMappingsNeedsData : public testing::Test {
 protected:
  struct CaseFile {
    Json document;
    std::vector<LoopNestCase> cases;
  };

  void SetUp() override {
    const char* folder = std::getenv("FORETOKEN_DATA");
    if (folder == nullptr) GTEST_SKIP() << "FORETOKEN_DATA is not set";
    folder_ = std::filesystem::path(folder) / "accelerator";
  }

  CaseFile read(const char* name) const {
    CaseFile file{.document = read_json_file(folder_ / name)};
    file.cases = read_loop_nest_cases(JsonView(file.document, name));
    return file;
  }

  std::filesystem::path folder_;
};

TEST_F(PublishedMappingsNeedsData, directives_mean_the_loops_that_timeloop_made_of_them) {
  const CaseFile file = read("own_cases.json");
  const auto items = JsonView(file.document, "own_cases.json").at("cases").items();
  ASSERT_EQ(items.size(), file.cases.size());
  for (size_t i = 0; i < items.size(); ++i) {
    const LoopNestCase& own = file.cases[i];
    const Mapping mapping = timeloop_mapping(directives_in(items[i].at("mapping_spec")), own.architecture, own.problem);
    EXPECT_EQ(loop_nest_text(mapping, own.architecture, own.problem),
              loop_nest_text(own.mapping, own.architecture, own.problem))
        << own.id;
  }
}

TEST_F(PublishedMappingsNeedsData, read_back_from_both_forms_that_we_write) {
  for (const char* name : {"own_cases.json", "dense_cases.json", "conv1_eyeriss_cases.json"}) {
    for (const LoopNestCase& own : read(name).cases) {
      const std::string expected = loop_nest_text(own.mapping, own.architecture, own.problem);
      const std::string yaml = timeloop_map_yaml(own.mapping, own.architecture, own.problem);
      const Json document = json_of_yaml(parse_yaml(yaml, "map.yaml"), "map.yaml");
      const Mapping from_yaml =
          timeloop_mapping(directives_in(JsonView(document, "map.yaml").at("mapping")), own.architecture, own.problem);
      EXPECT_EQ(loop_nest_text(from_yaml, own.architecture, own.problem), expected) << own.id;
      const Json json = mapping_json(own.mapping, own.architecture, own.problem);
      const Mapping from_json = read_mapping_json(JsonView(json, "map.json"), own.architecture, own.problem);
      EXPECT_EQ(loop_nest_text(from_json, own.architecture, own.problem), expected) << own.id;
    }
  }
}

TEST_F(PublishedMappingsNeedsData, cost_on_the_shipped_design_what_they_cost_on_the_published_one) {
  const AcceleratorCatalogue catalogue(FORETOKEN_SOURCE_DIR "/data/accelerators");
  const Architecture shipped = catalogue.design("eyeriss_168_timeloop").design.architecture;
  for (const LoopNestCase& own : read("conv1_eyeriss_cases.json").cases) {
    ASSERT_EQ(level_names(shipped), level_names(own.architecture));
    Evaluation published, ours;
    ASSERT_TRUE(MappingEvaluator(own.architecture, own.problem).evaluate(own.mapping, published)) << own.id;
    ASSERT_TRUE(MappingEvaluator(shipped, own.problem).evaluate(own.mapping, ours)) << own.id;
    EXPECT_EQ(ours.cycles, published.cycles) << own.id;
    for (size_t i = 0; i + 1 < shipped.levels.size(); ++i) {
      EXPECT_DOUBLE_EQ(ours.levels[i].access_pj, published.levels[i].access_pj)
          << own.id << " " << shipped.levels[i].name;
    }
  }
}

}  // namespace foretoken::timeloop_mapping_test
