// Lines over two axes as SVG.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace foretoken {

struct ChartLine {
  std::string name;
  std::vector<std::pair<double, double>> points;  // from left to right
  bool is_dashed = false;
};

// A straight line across the chart, such as a goal.
struct ChartMark {
  double at = 0;
  std::string label;
  bool is_vertical = false;  // at a place of the x axis
};

struct LineChart {
  std::string title, x_label, y_label;
  std::vector<ChartLine> lines;
  std::vector<ChartMark> marks;
  bool logarithmic_x = false, logarithmic_y = false;  // where all numbers are above zero
};

// The legend stands above the lines. A chart without points is a frame that says so.
std::string line_chart_svg(const LineChart& chart);

// Shares of a whole as one bar, with a legend that holds the figures.
struct BarPart {
  std::string name;
  double value = 0;
  std::string text;  // the value for people
};
// `whole`: of the bar where it is more than its parts, else 0.
std::string parts_bar_svg(const std::string& title, const std::vector<BarPart>& parts, double whole = 0);

}  // namespace foretoken
