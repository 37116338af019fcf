#include "report/chip/fusion_report.h"

#include <gtest/gtest.h>

namespace foretoken::fusion_report_test {

FoundFusion two_findings() {
  return {.findings = {{.name = "conv_relu",
                        .chain = {"Conv", "Relu"},
                        .verdict = FusionVerdict::fused,
                        .saved_share = 0.98,
                        .noise_share = 0.05,
                        .whole_seconds = 1e-4,
                        .part_seconds = {1e-4, 5e-5}},
                       {.name = "layer_norm_chain",
                        .chain = {"ReduceMean", "Sub", "Pow", "ReduceMean", "Add", "Sqrt", "Div", "Mul", "Add"},
                        .verdict = FusionVerdict::unsure}},
          .not_run = {"conv_hard_swish"}};
}

TEST(FusionReport, the_table_names_chains_verdicts_and_what_could_not_be_run) {
  const std::string text = fusion_text({"ONNX Runtime 1.22.0", "a CPU"}, two_findings());
  for (const char* part :
       {"Conv Relu", "fused", "98%", "150 us", "ReduceMean Sub ... Add (9)", "unsure", "not run: conv_hard_swish"}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
  }
}

TEST(FusionReport, a_chain_that_is_not_clear_is_null_in_the_file) {
  const Json json = fusion_json({"ONNX Runtime 1.22.0", "a CPU"}, two_findings(), {});
  EXPECT_EQ(json.find("format")->string(), "foretoken-fusion");
  const std::vector<Json>& found = json.find("found")->items();
  ASSERT_EQ(found.size(), 2U);
  EXPECT_TRUE(found[0].find("fused")->boolean());
  EXPECT_EQ(found[1].find("fused")->kind(), Json::Kind::null);
  EXPECT_EQ(found[0].find("seconds")->find("parts")->items().size(), 2U);
}

}  // namespace foretoken::fusion_report_test
