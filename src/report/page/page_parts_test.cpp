// Parts that several pages share.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "report/page/cost_parts.h"
#include "report/page/serving_parts.h"
#include "report/page/step_parts.h"

namespace foretoken::page_parts_test {

using testing::HasSubstr;
using testing::Not;

std::vector<RatePoint> points_with(const std::vector<std::pair<double, double>>& rate_and_ms) {
  std::vector<RatePoint> points;
  for (const auto& [rate, ms] : rate_and_ms) {
    points.push_back({.rate = rate, .metrics = {}});
    points.back().metrics.ttft.median_ms = ms;
  }
  return points;
}

double median_ttft(const ServingMetrics& metrics) {
  return metrics.ttft.median_ms;
}

TEST(DoublingRate, is_where_latency_has_doubled) {
  const std::optional<double> rate = doubling_rate(points_with({{1, 50}, {2, 60}, {4, 140}, {8, 1000}}), median_ttft);
  ASSERT_TRUE(rate.has_value());
  EXPECT_DOUBLE_EQ(*rate, 3) << "half way from 60 ms to 140 ms";
}

TEST(DoublingRate, a_load_that_never_queues_has_none) {
  EXPECT_EQ(doubling_rate(points_with({{1, 50}, {2, 60}, {4, 99}}), median_ttft), std::nullopt);
  EXPECT_EQ(doubling_rate({}, median_ttft), std::nullopt);
  EXPECT_EQ(doubling_rate(points_with({{1, 0}, {2, 5}}), median_ttft), std::nullopt) << "nothing to compare with";
}

TEST(RateCharts, have_the_limit_and_the_marked_rates) {
  HtmlPage page("page");
  add_rate_charts(page, points_with({{1, 50}, {2, 60}}),
                  {{.title = "TTFT", .caption = "c", .lines = {{"median", median_ttft}}, .limit_ms = 70}},
                  {{1.5, "capacity"}});
  const std::string html = page.finish();
  EXPECT_THAT(html, HasSubstr(">limit</text>"));
  EXPECT_THAT(html, HasSubstr(">capacity</text>"));
}

Device some_gpu() {
  Device device;
  device.name = "some_gpu";
  device.title = "Some GPU";
  device.memory_bandwidth = Fact<BytesPerSecond>{.value = BytesPerSecond(1e12)};
  device.dense_peak[static_cast<size_t>(DType::bf16)] = Fact<FlopsPerSecond>{.value = FlopsPerSecond(100e12)};
  return device;
}

TimedOperator operator_of(const char* name, double flops, double bytes, double seconds) {
  TimedOperator timed{.call = {.name = name},
                      .kernel = KernelEstimate{},
                      .seconds = {.value = seconds, .low = seconds, .high = seconds}};
  timed.work = {.flops = Flops(flops), .weights_read = Bytes(bytes)};
  return timed;
}

std::vector<TypicalStep> some_steps() {
  TypicalStep typical{.device = "some_gpu", .share = {.phase = StepPhase::decode, .steps = 1, .seconds = 4}};
  typical.step.seconds = exactly(4);
  typical.step.stages.resize(2);
  typical.step.stages[0].operators = {operator_of("qkv", 10e12, 1e12, 1), operator_of("copy", 0, 1e12, 1)};
  typical.step.stages[1].operators = {operator_of("qkv", 10e12, 1e12, 1)};
  return {typical};
}

TEST(RooflinePart, an_operator_has_its_place_below_the_roof) {
  HtmlPage page("page");
  add_roofline(page, some_steps(), some_gpu());
  const std::string html = page.finish();
  // 10 FLOP/byte under 1 TB/s: a roof of 10 TFLOP/s, reached as both stages take 2 s for 20 TFLOP; half of the step.
  EXPECT_THAT(
      html,
      HasSubstr("1 qkv</th><td class=\"words\">decode</td><td>50%</td><td>10</td><td>10.0 TFLOP/s</td><td>100%</td>"));
  EXPECT_THAT(html, Not(HasSubstr("copy"))) << "what does not multiply has no place";
}

TEST(RooflinePart, a_sheet_without_a_peak_has_none) {
  Device device = some_gpu();
  device.dense_peak = {};
  HtmlPage page("page");
  const std::string before = page.finish();
  add_roofline(page, some_steps(), device);
  EXPECT_EQ(page.finish(), before);
}

TEST(OperatorTimes, gaps_between_kernels_are_a_part) {
  HtmlPage page("page");
  add_operator_times(page, some_steps(), "Time", "caption");
  EXPECT_THAT(page.finish(), HasSubstr("qkv 2.00 s (50%)"));
  EXPECT_THAT(page.finish(), HasSubstr("host and gaps 1.00 s (25%)"));
}

TEST(RentPart, is_of_all_devices_and_all_tokens) {
  HtmlPage page("page");
  add_rent(page, {.device = "Some GPU",
                  .devices = 2,
                  .usd_per_device_hour = 1.8,
                  .price_source = "a lender",
                  .tokens_per_second = 1000,
                  .tokens = "output tokens"});
  EXPECT_THAT(page.finish(), HasSubstr("3.60 USD"));
  EXPECT_THAT(page.finish(), HasSubstr("Per million output tokens</th><td>1 USD</td>"));
  EXPECT_THAT(page.finish(), HasSubstr("a lender"));
}

}  // namespace foretoken::page_parts_test
