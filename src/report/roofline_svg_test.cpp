#include "report/roofline_svg.h"

#include <algorithm>

#include <gtest/gtest.h>

namespace foretoken {
namespace {

size_t count_of(const std::string& whole, const std::string& part) {
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
  EXPECT_EQ(count_of(svg, "<title>row: measured"), 2 * 7u) << "a ring and a dot for each";
  EXPECT_NE(svg.find("measured (7 rows)"), std::string::npos);
  EXPECT_NE(svg.find("predicted, 90% interval"), std::string::npos);
}

TEST(RooflineSvg, thins_out_what_would_be_a_blot_and_says_so) {
  const std::string svg = roofline_svg(figure_of(5000));
  const size_t drawn = count_of(svg, "<title>row: measured") / 2;
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

}  // namespace
}  // namespace foretoken
