#include "report/network/collective_plot.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/counted.h"
#include "base/error.h"
#include "base/text.h"
#include "report/drawing/axis.h"
#include "report/drawing/svg.h"

namespace foretoken {
namespace {

constexpr double plot_width = 920, plot_height = 520;
constexpr double plot_left = 96, plot_right = plot_width - 28, plot_top = 74, plot_bottom = plot_height - 64;
constexpr std::string_view line_colour = "#2374ab", band_colour = "#b9d6eb", frame_colour = "#1f2933";

void draw_axes(Svg& svg, const Axis& across, const Axis& up) {
  for (const double tick : across.ticks()) {
    const double x = across.position(tick);
    svg.line({x, plot_top}, {x, plot_bottom}, {.stroke = grid_colour});
    svg.text({x, plot_bottom + 18}, bytes_text(tick), {.anchor = SvgAnchor::middle});
  }
  for (const double tick : up.ticks()) {
    const double y = up.position(tick);
    svg.line({plot_left, y}, {plot_right, y}, {.stroke = grid_colour});
    svg.text({plot_left - 8, y + 4}, rate_text(tick, "B/s"), {.size = 11, .anchor = SvgAnchor::end});
  }
  svg.rectangle({plot_left, plot_top}, plot_right - plot_left, plot_bottom - plot_top, {.stroke = frame_colour});
  svg.text({(plot_left + plot_right) / 2, plot_bottom + 40}, "size", {.size = 13, .anchor = SvgAnchor::middle});
  svg.text({18, (plot_top + plot_bottom) / 2}, "bus bandwidth",
           {.size = 13, .anchor = SvgAnchor::middle, .rotation = -90});
}

}  // namespace

std::string collective_plot(const CollectiveReport& report) {
  double slowest = 0, fastest = 0;
  for (const CollectiveRow& row : report.rows) {
    const Estimate& seconds = row.estimate.seconds;
    if (!(row.estimate.bus_bandwidth > 0) || !(row.bytes > 0)) continue;
    const double low = row.estimate.bus_bandwidth * seconds.value / seconds.high;
    const double high = row.estimate.bus_bandwidth * seconds.value / seconds.low;
    slowest = slowest == 0 ? low : std::min(slowest, low);
    fastest = std::max(fastest, high);
  }
  if (report.rows.size() < 2 || slowest == 0) {
    throw InputError({.field = "plot",
                      .value = counted(report.rows.size(), "size"),
                      .expected = "at least two sizes of a collective that moves bytes: {sizes} 1K:1G"});
  }
  const Axis across =
      Axis::logarithmic(std::max(1.0, report.rows.front().bytes), report.rows.back().bytes, plot_left, plot_right);
  const Axis up = Axis::logarithmic(slowest / 1.2, fastest * 1.2, plot_bottom, plot_top);
  Svg svg(plot_width, plot_height, fmt::format("{} on {}", collective_kind_name(report.kind), report.machine));
  svg.text({plot_left, 30}, fmt::format("{} on {}", collective_kind_name(report.kind), report.machine),
           {.size = 18, .bold = true});
  svg.text({plot_left, 52}, fmt::format("{}; the band is the 90% interval", report.group), {.size = 13});
  draw_axes(svg, across, up);

  std::vector<SvgPoint> line, band, lower;
  for (const CollectiveRow& row : report.rows) {
    if (!(row.estimate.bus_bandwidth > 0) || !(row.bytes > 0)) continue;
    const Estimate& seconds = row.estimate.seconds;
    const double x = across.position(row.bytes), rate = row.estimate.bus_bandwidth;
    line.push_back({x, up.position(rate)});
    band.push_back({x, up.position(rate * seconds.value / seconds.low)});
    lower.push_back({x, up.position(rate * seconds.value / seconds.high)});
  }
  band.insert(band.end(), lower.rbegin(), lower.rend());
  svg.polygon(band, {.fill = band_colour, .opacity = 0.6});
  svg.polyline(line, {.stroke = line_colour, .width = 2});
  std::string before;
  for (const CollectiveRow& row : report.rows) {
    if (!(row.estimate.bus_bandwidth > 0) || !(row.bytes > 0)) continue;
    const std::string chosen = candidate_text(row.estimate.choice.chosen);
    const SvgPoint at{across.position(row.bytes), up.position(row.estimate.bus_bandwidth)};
    svg.circle(at, 3, {.fill = line_colour},
               fmt::format("{}: {}, {}", bytes_text(row.bytes), duration_text(row.estimate.seconds.value), chosen));
    if (chosen != before) svg.text({at.x + 4, at.y + 18}, chosen, {.size = 11, .halo = true});
    before = chosen;
  }
  return svg.finish();
}

}  // namespace foretoken
