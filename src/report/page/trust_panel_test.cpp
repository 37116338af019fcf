#include "report/page/trust_panel.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace foretoken::trust_panel_test {

using testing::HasSubstr;
using testing::Not;

std::string trust_html(const Trust& trust) {
  HtmlPage page("page");
  add_trust(page, trust);
  return page.finish();
}

PublishedGroup some_group(std::string layer, std::string group, int64_t rows, double error) {
  return {.layer = std::move(layer),
          .group = std::move(group),
          .seen = "unseen",
          .source = "somebody",
          .rows = rows,
          .mean_error = error,
          .in_interval = std::nullopt};
}

TEST(TrustPanel, a_layer_without_measurements_says_so) {
  const std::string html = trust_html({.layers = {"kernels", "serving"},
                                       .names = {"h100_sxm"},
                                       .published = {some_group("kernels", "gemm, h100_sxm", 3, 5)},
                                       .time_of = {}});
  EXPECT_THAT(html, HasSubstr("Serving engine</th><td>not published"));
  EXPECT_THAT(html, Not(HasSubstr("Kernels</th><td>not published")));
}

TEST(TrustPanel, errors_are_of_rows_and_those_of_the_own_device_stand_first_and_apart) {
  const std::string html = trust_html(
      {.layers = {"kernels"},
       .names = {"h100_sxm", "NVIDIA H100 80GB HBM3"},
       .published = {some_group("kernels", "gemm, a100_sxm", 1, 50), some_group("steps", "decode, h100_sxm", 1, 99),
                     some_group("kernels", "gemm, H100-SXM", 1, 10),
                     some_group("kernels", "attention, nvidia_h100_80gb_hbm3", 3, 2)},
       .time_of = {}});
  const size_t own = html.find("<td>4.0%</td><td></td><td>4</td><td class=\"words\">this device</td>");
  const size_t others = html.find("<td>50.0%</td><td></td><td>1</td><td class=\"words\">other devices</td>");
  ASSERT_NE(own, std::string::npos) << html;
  ASSERT_NE(others, std::string::npos) << html;
  EXPECT_LT(own, others);
  EXPECT_THAT(html, Not(HasSubstr("99.0%"))) << "a layer that the prediction did not go through";
}

TEST(TrustPanel, the_share_of_each_confidence_is_of_the_time) {
  Trust trust{.layers = {}, .names = {}, .published = {}, .time_of = "all kernels"};
  EXPECT_THAT(trust_html(trust), HasSubstr("This estimate does not record"));
  trust.time = {1, 2, 1, 0};
  const std::string html = trust_html(trust);
  EXPECT_THAT(html, HasSubstr("measured</th><td>25%</td>"));
  EXPECT_THAT(html, HasSubstr("interpolated</th><td>50%</td>"));
  EXPECT_THAT(html, HasSubstr("roofline</th><td>0%</td>"));
}

TEST(TrustPanel, collectives_count_in_the_time_but_not_in_that_of_kernels) {
  StepEstimate step;
  step.stages.resize(1);
  step.stages[0].operators = {
      {.call = {.name = "gemm"}, .kernel = KernelEstimate{}, .seconds = {.value = 3, .kind = Confidence::interpolated}},
      {.call = {.name = "all_reduce"}, .seconds = {.value = 1, .kind = Confidence::roofline}}};
  EXPECT_EQ(time_by_confidence(step), (TimeByConfidence{0, 3, 0, 1}));
  EXPECT_EQ(kernel_time_by_confidence(step), (TimeByConfidence{0, 3, 0, 0}));
}

}  // namespace foretoken::trust_panel_test
