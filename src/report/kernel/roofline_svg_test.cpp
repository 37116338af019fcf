#include "report/kernel/roofline_svg.h"

#include <algorithm>

#include <gtest/gtest.h>

namespace foretoken::roofline_svg_test {

size_t marks_in(const std::string& whole, const std::string& part) {
  size_t count = 0;
  for (size_t at = whole.find(part); at != std::string::npos; at = whole.find(part, at + 1)) ++count;
  return count;
}

RooflineFigure figure_of(size_t measured) {
  RooflineFigure figure{
      .title = "gemm on a <GPU>",
      .subtitle = "m & n",
      .axes = {.peak = FlopsPerSecond(989e12), .bandwidth = BytesPerSecond(3.35e12), .peak_label = "bf16 dense peak"},
      .cache_bandwidth = BytesPerSecond(8e12)};
  figure.predicted.push_back({.flops_per_byte = 100,
                              .rate = FlopsPerSecond(200e12),
                              .low = FlopsPerSecond(150e12),
                              .high = FlopsPerSecond(250e12),
                              .label = "1 ms"});
  for (size_t i = 0; i < measured; ++i) {
    figure.measured.push_back({.flops_per_byte = 10 + static_cast<double>(i),
                               .measured = FlopsPerSecond(20e12),
                               .predicted = FlopsPerSecond(21e12),
                               .label = "row"});
  }
  return figure;
}

TEST(RooflineSvg, shows_roofs_the_prediction_and_each_measured_row) {
  const std::string svg = roofline_svg(figure_of(7));
  EXPECT_NE(svg.find("gemm on a &lt;GPU&gt;"), std::string::npos);
  EXPECT_NE(svg.find("DRAM, 3.35 TB/s"), std::string::npos);
  EXPECT_NE(svg.find("L2 as fitted, 8.00 TB/s"), std::string::npos);
  EXPECT_NE(svg.find("bf16 dense peak, 989 TFLOP/s"), std::string::npos);
  EXPECT_EQ(marks_in(svg, "<title>row: measured"), 2 * 7u) << "a ring and a dot for each";
  EXPECT_NE(svg.find("measured (7 rows)"), std::string::npos);
  EXPECT_NE(svg.find("predicted, 90% interval"), std::string::npos);
}

TEST(RooflineSvg, thins_out_what_would_be_a_blot_and_says_so) {
  const std::string svg = roofline_svg(figure_of(5000));
  const size_t drawn = marks_in(svg, "<title>row: measured") / 2;
  EXPECT_LE(drawn, most_measured_marks);
  EXPECT_GT(drawn, most_measured_marks / 2);
  EXPECT_NE(svg.find(" of 5000 rows)"), std::string::npos);
}

TEST(RooflineSvg, marks_without_a_place_are_left_out) {
  RooflineFigure figure = figure_of(1);
  figure.measured.push_back({.flops_per_byte = 0, .measured = FlopsPerSecond(1), .predicted = FlopsPerSecond(1)});
  figure.predicted.push_back({.flops_per_byte = 1, .rate = FlopsPerSecond(0)});
  const std::string svg = roofline_svg(figure);
  EXPECT_EQ(svg.find("nan"), std::string::npos);
  EXPECT_EQ(svg.find("inf"), std::string::npos);
}

TEST(RooflineSvg, a_kernel_far_from_the_others_is_still_inside_the_frame) {
  RooflineFigure figure = figure_of(0);
  figure.predicted[0] = {.flops_per_byte = 0.01,
                         .rate = FlopsPerSecond(1e6),
                         .low = FlopsPerSecond(1e5),
                         .high = FlopsPerSecond(1e7),
                         .label = "slow"};
  const std::string svg = roofline_svg(figure);
  EXPECT_NE(svg.find("100 kFLOP/s"), std::string::npos) << "the axis reaches down to it";
}

TEST(RooflineSvg, the_same_figure_gives_the_same_bytes) {
  EXPECT_EQ(roofline_svg(figure_of(50)), roofline_svg(figure_of(50)));
}

TEST(RooflineSvg, tags_stand_beside_their_marks_and_not_on_each_other) {
  RooflineFigure figure = figure_of(0);
  figure.series = {"decode", "prefill"};
  figure.predicted.assign(2, figure.predicted.front());
  figure.predicted[0].tag = "1";
  figure.predicted[1].tag = "2";
  figure.predicted[1].series = 1;
  const std::string svg = roofline_svg(figure);
  const auto place_of = [&](const std::string& tag) {
    const size_t end = svg.find(">" + tag + "</text>");
    EXPECT_NE(end, std::string::npos) << tag;
    const size_t begin = svg.rfind("<text", end);
    return svg.substr(begin, svg.find("font-size", begin) - begin);
  };
  EXPECT_NE(place_of("1"), place_of("2"));
  EXPECT_NE(svg.find(">decode</text>"), std::string::npos);
  EXPECT_NE(svg.find(">prefill</text>"), std::string::npos);
}

TEST(DeviceRoofs, the_highest_peak_is_the_roof_and_the_others_lie_below) {
  Device device;
  device.memory_bandwidth = Fact<BytesPerSecond>{.value = BytesPerSecond(2e12)};
  device.dense_peak[static_cast<size_t>(DType::bf16)] = Fact<FlopsPerSecond>{.value = FlopsPerSecond(1e15)};
  device.dense_peak[static_cast<size_t>(DType::fp8)] = Fact<FlopsPerSecond>{.value = FlopsPerSecond(2e15)};
  const std::optional<RooflineFigure> figure = device_roofs(device, {DType::bf16, DType::fp8});
  ASSERT_TRUE(figure.has_value());
  EXPECT_EQ(figure->axes.peak.value(), 2e15);
  ASSERT_EQ(figure->lower_peaks.size(), 1U);
  EXPECT_EQ(figure->lower_peaks.front().first, "bf16");
  EXPECT_FALSE(device_roofs(device, {}).has_value());
  device.memory_bandwidth.reset();
  EXPECT_FALSE(device_roofs(device, {DType::bf16}).has_value());
}

}  // namespace foretoken::roofline_svg_test
