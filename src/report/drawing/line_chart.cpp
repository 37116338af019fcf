#include "report/drawing/line_chart.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <string_view>

#include <fmt/format.h>

#include "report/drawing/axis.h"
#include "report/drawing/svg.h"

namespace foretoken {
namespace {

constexpr double chart_width = 760, chart_height = 330;
constexpr double chart_left = 72, chart_right = 740, chart_top = 62, chart_bottom = 280;
constexpr std::string_view chart_grid_colour = "#e4e8ee", chart_ink = "#5b6675", mark_colour = "#b4232a";
// Told apart also without colour vision (Okabe and Ito).
constexpr std::array<std::string_view, 10> line_colours = {"#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9",
                                                           "#e69f00", "#4d4d4d", "#882255", "#88ccee", "#999933"};

struct Extent {
  double least = std::numeric_limits<double>::infinity(), most = -std::numeric_limits<double>::infinity();
  void add(double value) {
    least = std::min(least, value);
    most = std::max(most, value);
  }
  bool empty() const { return least > most; }
};

Axis axis_over(Extent extent, bool logarithmic, double from, double to) {
  // Less than a decade has no two ticks to read a logarithmic axis by.
  if (logarithmic && extent.least > 0 && extent.most >= 10 * extent.least) {
    return Axis::logarithmic(extent.least, extent.most, from, to);
  }
  extent.add(0);
  if (extent.most <= extent.least) extent.most = extent.least + 1;
  return Axis::linear(extent.least, extent.most, from, to);
}

std::string tick_text(double value) {
  const double size = std::abs(value);
  if (size >= 1e9) return fmt::format("{:g}G", value / 1e9);
  if (size >= 1e6) return fmt::format("{:g}M", value / 1e6);
  if (size >= 1e4) return fmt::format("{:g}k", value / 1e3);
  return fmt::format("{:g}", value);
}

void draw_axes(Svg& svg, const LineChart& chart, const Axis& x, const Axis& y) {
  for (const double tick : y.ticks()) {
    const double at = y.position(tick);
    svg.line({chart_left, at}, {chart_right, at}, {.stroke = chart_grid_colour});
    svg.text({chart_left - 8, at + 4}, tick_text(tick), {.size = 11, .anchor = SvgAnchor::end, .fill = chart_ink});
  }
  for (const double tick : x.ticks()) {
    const double at = x.position(tick);
    svg.line({at, chart_bottom}, {at, chart_bottom + 5}, {.stroke = chart_ink});
    svg.text({at, chart_bottom + 19}, tick_text(tick), {.size = 11, .anchor = SvgAnchor::middle, .fill = chart_ink});
  }
  svg.line({chart_left, chart_bottom}, {chart_right, chart_bottom}, {.stroke = chart_ink});
  svg.text({(chart_left + chart_right) / 2, chart_bottom + 40}, chart.x_label,
           {.size = 12, .anchor = SvgAnchor::middle, .fill = chart_ink});
  svg.text({18, (chart_top + chart_bottom) / 2}, chart.y_label,
           {.size = 12, .anchor = SvgAnchor::middle, .fill = chart_ink, .rotation = -90});
}

void draw_marks(Svg& svg, const LineChart& chart, const Axis& x, const Axis& y) {
  for (const ChartMark& mark : chart.marks) {
    const SvgStyle style{.stroke = mark_colour, .width = 1.5, .dash = "5 4"};
    if (mark.is_vertical) {
      const double at = x.position(mark.at);
      svg.line({at, chart_top}, {at, chart_bottom}, style);
      const bool to_the_left = at > (chart_left + chart_right) / 2;  // so that it stays inside
      svg.text(
          {to_the_left ? at - 5 : at + 5, chart_top + 12}, mark.label,
          {.size = 11, .anchor = to_the_left ? SvgAnchor::end : SvgAnchor::start, .fill = mark_colour, .halo = true});
    } else {
      const double at = y.position(mark.at);
      svg.line({chart_left, at}, {chart_right, at}, style);
      svg.text({chart_right - 4, at - 5}, mark.label,
               {.size = 11, .anchor = SvgAnchor::end, .fill = mark_colour, .halo = true});
    }
  }
}

}  // namespace

std::string line_chart_svg(const LineChart& chart) {
  Svg svg(chart_width, chart_height, chart.title);
  svg.text({24, 24}, chart.title, {.size = 15, .bold = true});
  Extent across, up;
  for (const ChartLine& line : chart.lines) {
    for (const auto& [x, y] : line.points) {
      across.add(x);
      up.add(y);
    }
  }
  if (across.empty()) {
    svg.text({chart_width / 2, chart_height / 2}, "nothing to show",
             {.size = 13, .anchor = SvgAnchor::middle, .fill = chart_ink});
    return svg.finish();
  }
  for (const ChartMark& mark : chart.marks) (mark.is_vertical ? across : up).add(mark.at);
  const Axis x = axis_over(across, chart.logarithmic_x, chart_left, chart_right);
  const Axis y = axis_over(up, chart.logarithmic_y, chart_bottom, chart_top);
  draw_axes(svg, chart, x, y);
  double legend = chart_left;
  for (size_t i = 0; i < chart.lines.size(); ++i) {
    const ChartLine& line = chart.lines[i];
    const SvgStyle style{
        .stroke = line_colours[i % line_colours.size()], .width = 2, .dash = line.is_dashed ? "6 4" : ""};
    std::vector<SvgPoint> points;
    for (const auto& [across_value, up_value] : line.points) {
      points.push_back({x.position(across_value), y.position(up_value)});
    }
    svg.polyline(points, style);
    svg.line({legend, 46}, {legend + 20, 46}, style);
    svg.text({legend + 26, 50}, line.name, {.size = 12});
    legend += 44 + svg_text_width(line.name, 12);
  }
  draw_marks(svg, chart, x, y);
  return svg.finish();
}

std::string parts_bar_svg(const std::string& title, const std::vector<BarPart>& parts, double whole) {
  constexpr double bar_top = 40, bar_height = 26, row = 20, columns = 2;
  double sum = 0;
  for (const BarPart& part : parts) sum += part.value;
  const double all = std::max(sum, whole);
  const double rows = std::ceil(static_cast<double>(parts.size()) / columns);
  Svg svg(chart_width, bar_top + bar_height + 24 + rows * row, title);
  svg.text({24, 24}, title, {.size = 15, .bold = true});
  svg.rectangle({24, bar_top}, chart_right - 24, bar_height, {.stroke = chart_ink});
  double at = 24;
  for (size_t i = 0; i < parts.size(); ++i) {
    const std::string_view colour = line_colours[i % line_colours.size()];
    const double wide = all > 0 ? (chart_right - 24) * parts[i].value / all : 0;
    if (wide > 0) svg.rectangle({at, bar_top}, wide, bar_height, {.stroke = "#ffffff", .fill = colour});
    at += wide;
    const double legend_x = 24 + (chart_right - 24) / columns * static_cast<double>(i % static_cast<size_t>(columns));
    const double legend_y = bar_top + bar_height + 22 + row * static_cast<double>(i / static_cast<size_t>(columns));
    svg.rectangle({legend_x, legend_y - 10}, 12, 12, {.fill = colour});
    svg.text({legend_x + 18, legend_y},
             fmt::format("{} {} ({:.0f}%)", parts[i].name, parts[i].text, all > 0 ? 100 * parts[i].value / all : 0),
             {.size = 12});
  }
  return svg.finish();
}

}  // namespace foretoken
