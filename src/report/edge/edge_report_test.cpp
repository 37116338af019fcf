#include "report/edge/edge_report.h"

#include <gtest/gtest.h>

namespace foretoken::edge_report_test {

TEST(EdgeReport, spaces_name_each_device_with_its_figures) {
  FewshotSpace space{.name = "nasbench201"};
  space.validation.groups = {{.device = "a_device_of_a_long_name", .failed_rows = 3, .queries = 900},
                             {.device = "pixel", .sum_of_blocks = true, .queries = 900}};
  space.validation.measured = {.queries = 900};
  const Json json = fewshot_json(std::vector<FewshotSpace>{space});
  const JsonView first = JsonView(json, "spaces").items().at(0);
  EXPECT_EQ(first.at("devices").items().at(0).at("device").string(), "a_device_of_a_long_name");
  EXPECT_EQ(first.at("devices").items().at(0).at("failed_rows").integer(), 3);
  EXPECT_TRUE(first.at("devices").items().at(1).at("sum_of_blocks").boolean());
  EXPECT_FALSE(first.has("sums_of_blocks")) << "no mean over devices where none was added up";
  EXPECT_NE(fewshot_text(std::vector<FewshotSpace>{space}).find("pixel"), std::string::npos);
}

}  // namespace foretoken::edge_report_test
