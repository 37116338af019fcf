#include "report/kernel/roofline_plot.h"

#include <algorithm>
#include <sstream>

#include <gtest/gtest.h>

namespace foretoken::roofline_plot_test {

const RooflineAxes h100{
    .peak = FlopsPerSecond(989e12), .bandwidth = BytesPerSecond(3.35e12), .peak_label = "bf16 peak"};

// The cells of the plot, without the labels beside and the legend below.
std::string plot_area(const std::string& text) {
  std::istringstream lines(text);
  std::string area;
  for (std::string line; std::getline(lines, line);) {
    if (const size_t edge = line.find('|'); edge != std::string::npos) area += line.substr(edge + 1) + "\n";
  }
  return area;
}

TEST(RooflinePlot, points_on_one_spot_all_show) {
  std::vector<RooflinePoint> points;
  for (int i = 0; i < 8; ++i) {
    points.push_back({.label = "same", .flops_per_byte = 62.0 + 0.1 * i, .rate = FlopsPerSecond(150e12)});
  }
  const std::string area = plot_area(roofline_plot(h100, points));
  for (char letter = 'A'; letter <= 'H'; ++letter) EXPECT_EQ(std::count(area.begin(), area.end(), letter), 1) << area;
}

TEST(RooflinePlot, a_slow_point_lies_below_a_faster_one_and_none_is_pressed_to_the_edge) {
  const std::vector<RooflinePoint> points = {{.label = "fast", .flops_per_byte = 0.7, .rate = FlopsPerSecond(625e9)},
                                             {.label = "slow", .flops_per_byte = 0.7, .rate = FlopsPerSecond(6e9)},
                                             {.label = "slower", .flops_per_byte = 0.7, .rate = FlopsPerSecond(0.6e9)}};
  const std::string area = plot_area(roofline_plot(h100, points));
  EXPECT_LT(area.find('A'), area.find('B'));
  EXPECT_LT(area.find('B'), area.find('C'));
}

TEST(RooflinePlot, lines_stay_within_the_width) {
  std::istringstream lines(roofline_plot(h100, {{.label = "x", .flops_per_byte = 1e5, .rate = FlopsPerSecond(1e3)}}));
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 100u) << line;
}

TEST(RooflinePlot, points_without_flops_or_bytes_are_left_out) {
  const std::string text = roofline_plot(h100, {{.label = "copy", .flops_per_byte = 0, .rate = FlopsPerSecond(1e9)},
                                                {.label = "idle", .flops_per_byte = 1, .rate = FlopsPerSecond(0)}});
  EXPECT_EQ(text.find("copy"), std::string::npos);
  EXPECT_EQ(text.find("idle"), std::string::npos);
}

}  // namespace foretoken::roofline_plot_test
