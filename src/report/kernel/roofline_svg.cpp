#include "report/kernel/roofline_svg.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

#include <fmt/format.h>

#include "base/counted.h"
#include "base/portable_math.h"
#include "base/text.h"
#include "report/drawing/axis.h"
#include "report/drawing/svg.h"

namespace foretoken {
namespace {

constexpr double width = 920, height = 620;
constexpr double left = 112, right = width - 28, top = 74, bottom = height - 104;

constexpr std::string_view roof_colour = "#1f2933", cache_colour = "#7b8794";
constexpr std::string_view measured_colour = "#2374ab", forecast_colour = "#f08a24";
constexpr std::array<std::string_view, 3> asked_colours = {"#c81d25", "#0072b2", "#00795c"};  // of series

bool has_place(double intensity, FlopsPerSecond rate) {
  return intensity > 0 && std::isfinite(intensity) && rate.value() > 0 && std::isfinite(rate.value());
}

struct Frame {
  Axis across, up;
  SvgPoint at(double intensity, double rate) const { return {across.position(intensity), up.position(rate)}; }
};

// Whole decades around all marks, two on either side of the ridge at least.
Frame frame_of(const RooflineFigure& figure) {
  const double peak = figure.axes.peak.value(), bandwidth = figure.axes.bandwidth.value();
  const double ridge = peak / bandwidth;
  double least = ridge / 50, most = ridge * 15, slowest = peak / 500;
  const auto include = [&](double intensity, double rate) {
    least = std::min(least, intensity * 0.7);
    most = std::max(most, intensity * 1.5);
    slowest = std::min(slowest, rate * 0.7);
  };
  for (const PredictedMark& mark : figure.predicted) {
    if (has_place(mark.flops_per_byte, mark.rate)) include(mark.flops_per_byte, mark.low.value());
  }
  for (const MeasuredMark& mark : figure.measured) {
    if (has_place(mark.flops_per_byte, mark.measured))
      include(mark.flops_per_byte, std::min(mark.measured, mark.predicted).value());
  }
  const double highest = peak * std::max(2.2, portable_pow(peak / slowest, 0.07));  // room for the label of the roof
  return {.across = Axis::logarithmic(power_of_ten(decade_of(least)), most, left, right),
          .up = Axis::logarithmic(std::min(slowest, highest / 1000), highest, bottom, top)};
}

void draw_axes(Svg& svg, const Frame& frame) {
  for (const double tick : frame.across.small_ticks()) {
    const double x = frame.across.position(tick);
    svg.line({x, bottom}, {x, bottom + 3}, {.stroke = cache_colour, .width = 0.7});
  }
  for (const double tick : frame.up.small_ticks()) {
    const double y = frame.up.position(tick);
    svg.line({left - 3, y}, {left, y}, {.stroke = cache_colour, .width = 0.7});
  }
  for (const double tick : frame.across.ticks()) {
    const double x = frame.across.position(tick);
    svg.line({x, top}, {x, bottom}, {.stroke = grid_colour});
    svg.text({x, bottom + 18}, number_text(tick), {.anchor = SvgAnchor::middle});
  }
  for (const double tick : frame.up.ticks()) {
    const double y = frame.up.position(tick);
    svg.line({left, y}, {right, y}, {.stroke = grid_colour});
    svg.text({left - 8, y + 4}, rate_text(tick, "FLOP/s"), {.size = 11, .anchor = SvgAnchor::end});
  }
  svg.rectangle({left, top}, right - left, bottom - top, {.stroke = roof_colour, .width = 1});
  svg.text({(left + right) / 2, bottom + 40}, "arithmetic intensity, FLOP per byte of minimum traffic",
           {.size = 13, .anchor = SvgAnchor::middle});
  svg.text({18, (top + bottom) / 2}, "FLOP per second", {.size = 13, .anchor = SvgAnchor::middle, .rotation = -90});
}

// A line that bounds what is possible. Lines lie under the marks, their labels over them.
struct Roof {
  std::vector<SvgPoint> points;
  SvgStyle style;
  std::string label;
  SvgPoint label_at;
  SvgTextStyle label_style;
};

// A slope of constant bandwidth up to the roof at `peak`, its label along it: above, or below where another is near.
Roof slope(const Frame& frame, double peak, double bandwidth, std::string label, bool above, const SvgStyle& style) {
  const double first = std::max(frame.across.least(), frame.up.least() / bandwidth);
  const double last = std::clamp(peak / bandwidth, first, frame.across.most());
  const SvgPoint from = frame.at(first, first * bandwidth), to = frame.at(last, last * bandwidth);
  Roof roof{.points = {from, to}, .style = style};
  const double across = to.x - from.x, down = to.y - from.y, length = portable_hypot(across, down);
  if (length < svg_text_width(label, 12) + 30) return roof;  // no room for a label
  const double along = 0.12, away = above ? 7 : -17;
  roof.label = std::move(label);
  roof.label_at = {from.x + along * across + away * down / length, from.y + along * down - away * across / length};
  const double degrees = std::atan2(down, across) * 180 / std::numbers::pi;  // drawn with two digits
  roof.label_style = {.fill = style.stroke, .rotation = degrees, .halo = true};
  return roof;
}

// The flat part, from where `bandwidth` reaches it to the right edge.
Roof flat(const Frame& frame, double peak, double bandwidth, std::string label, double size, const SvgStyle& style) {
  const SvgPoint from = frame.at(peak / bandwidth, peak);
  return {.points = {from, {right, from.y}},
          .style = style,
          .label = std::move(label),
          .label_at = {right - 8, from.y - 0.6 * size},
          .label_style = {.size = size, .anchor = SvgAnchor::end, .fill = style.stroke, .halo = true}};
}

std::vector<Roof> roofs_of(const Frame& frame, const RooflineFigure& figure) {
  constexpr SvgStyle solid{.stroke = roof_colour, .width = 2},
      dotted{.stroke = roof_colour, .width = 1.2, .dash = "2 3"},
      dashed{.stroke = cache_colour, .width = 1.5, .dash = "7 5"};
  const double peak = figure.axes.peak.value(), dram = figure.axes.bandwidth.value();
  std::vector<Roof> roofs;
  const bool has_cache = figure.cache_bandwidth && figure.cache_bandwidth->value() > dram;
  if (has_cache) {
    const double cache = figure.cache_bandwidth->value();
    roofs.push_back(slope(frame, peak, cache, fmt::format("L2 as fitted, {}", rate_text(cache, "B/s")), true, dashed));
    roofs.push_back(flat(frame, peak, cache, "", 12, dashed));
  }
  for (const auto& [label, lower] : figure.lower_peaks)
    roofs.push_back(flat(frame, lower.value(), dram, label, 11, dotted));
  roofs.push_back(slope(frame, peak, dram, fmt::format("DRAM, {}", rate_text(dram, "B/s")), !has_cache, solid));
  roofs.push_back(
      flat(frame, peak, dram, fmt::format("{}, {}", figure.axes.peak_label, rate_text(peak, "FLOP/s")), 12, solid));
  return roofs;
}

// Evenly through the list, so that at most most_measured_marks are left.
std::vector<const MeasuredMark*> picked(const std::vector<MeasuredMark>& marks) {
  std::vector<const MeasuredMark*> all;
  for (const MeasuredMark& mark : marks) {
    if (has_place(mark.flops_per_byte, mark.measured) && has_place(mark.flops_per_byte, mark.predicted))
      all.push_back(&mark);
  }
  const size_t kept = std::min(all.size(), most_measured_marks);
  std::vector<const MeasuredMark*> some;
  for (size_t i = 0; i < kept; ++i) some.push_back(all[i * all.size() / kept]);
  return some;
}

void draw_measured(Svg& svg, const Frame& frame, const std::vector<const MeasuredMark*>& marks) {
  for (const MeasuredMark* mark : marks) {
    svg.line(frame.at(mark->flops_per_byte, mark->measured.value()),
             frame.at(mark->flops_per_byte, mark->predicted.value()),
             {.stroke = forecast_colour, .width = 1, .opacity = 0.6});
  }
  for (const MeasuredMark* mark : marks) {
    const std::string tip =
        fmt::format("{}: measured {}, predicted {}", mark->label, rate_text(mark->measured.value(), "FLOP/s"),
                    rate_text(mark->predicted.value(), "FLOP/s"));
    svg.circle(frame.at(mark->flops_per_byte, mark->measured.value()), 3.2,
               {.stroke = measured_colour, .fill = "white", .width = 1.3, .opacity = 0.85}, tip);
    svg.circle(frame.at(mark->flops_per_byte, mark->predicted.value()), 1.7, {.fill = forecast_colour, .opacity = 0.9},
               tip);
  }
}

std::string_view series_colour(const PredictedMark& mark) {
  return asked_colours[mark.series % asked_colours.size()];
}

void draw_diamond(Svg& svg, SvgPoint at, double size, const SvgStyle& style, std::string_view tooltip) {
  const SvgPoint corners[] = {{at.x, at.y - size}, {at.x + size, at.y}, {at.x, at.y + size}, {at.x - size, at.y}};
  svg.polygon(corners, style, tooltip);
}

void draw_interval(Svg& svg, SvgPoint low, SvgPoint high, std::string_view colour) {
  svg.line(low, high, {.stroke = colour, .width = 1.6});
  for (const SvgPoint& end : {low, high})
    svg.line({end.x - 5, end.y}, {end.x + 5, end.y}, {.stroke = colour, .width = 1.6});
}

// Few enough for an interval each.
bool are_few(const std::vector<PredictedMark>& marks) {
  constexpr size_t most_intervals = 60;
  return marks.size() <= most_intervals;
}

// Each beside its mark, where no other one is yet.
void draw_tags(Svg& svg, const Frame& frame, const std::vector<PredictedMark>& marks) {
  constexpr double high = 13, wide = 18;
  constexpr SvgPoint places[] = {{9, 4}, {-22, 4}, {9, -10}, {-22, -10}, {9, 18}, {-22, 18}, {24, 4}, {-37, 4}};
  std::vector<SvgPoint> taken;
  for (const PredictedMark& mark : marks) {
    if (mark.tag.empty() || !has_place(mark.flops_per_byte, mark.rate)) continue;
    const SvgPoint at = frame.at(mark.flops_per_byte, mark.rate.value());
    SvgPoint chosen{at.x + places[0].x, at.y + places[0].y};
    for (const SvgPoint& place : places) {
      const SvgPoint here{at.x + place.x, at.y + place.y};
      const bool is_free = std::none_of(taken.begin(), taken.end(), [&](const SvgPoint& other) {
        return std::abs(other.x - here.x) < wide && std::abs(other.y - here.y) < high;
      });
      if (!is_free) continue;
      chosen = here;
      break;
    }
    taken.push_back(chosen);
    svg.text(chosen, mark.tag, {.size = 12, .fill = series_colour(mark), .bold = true, .halo = true});
  }
}

void draw_predicted(Svg& svg, const Frame& frame, const std::vector<PredictedMark>& marks) {
  const bool few = are_few(marks);
  constexpr size_t most_labels = 1;
  for (const PredictedMark& mark : marks) {
    if (!few || !has_place(mark.flops_per_byte, mark.rate)) continue;
    draw_interval(svg, frame.at(mark.flops_per_byte, mark.low.value()),
                  frame.at(mark.flops_per_byte, mark.high.value()), series_colour(mark));
  }
  for (const PredictedMark& mark : marks) {
    if (!has_place(mark.flops_per_byte, mark.rate)) continue;
    const SvgPoint at = frame.at(mark.flops_per_byte, mark.rate.value());
    draw_diamond(svg, at, few ? 6 : 3.6,
                 {.stroke = "white", .fill = series_colour(mark), .width = 0.8, .opacity = few ? 1 : 0.55}, mark.label);
    if (marks.size() > most_labels || !mark.tag.empty()) continue;
    const bool to_the_left = at.x + 14 + svg_text_width(mark.label, 12) > right;
    svg.text({at.x + (to_the_left ? -12 : 12), at.y + 18}, mark.label,
             {.anchor = to_the_left ? SvgAnchor::end : SvgAnchor::start,
              .fill = series_colour(mark),
              .bold = true,
              .halo = true});
  }
  draw_tags(svg, frame, marks);
}

void draw_legend(Svg& svg, const RooflineFigure& figure, size_t drawn) {
  const double y = height - 26;
  double x = left;
  const bool few = are_few(figure.predicted);
  const std::string all = few ? "predicted, 90% interval" : "predicted";
  const std::vector<std::string> series = figure.series.empty() ? std::vector<std::string>{all} : figure.series;
  for (size_t i = 0; i < series.size() && !figure.predicted.empty(); ++i) {
    const std::string_view colour = asked_colours[i % asked_colours.size()];
    const SvgPoint at{x + 6, y - 4};
    if (few) draw_interval(svg, {at.x, at.y + 9}, {at.x, at.y - 9}, colour);
    draw_diamond(svg, at, few ? 6 : 4, {.stroke = "white", .fill = colour, .width = 0.8}, {});
    svg.text({x + 18, y}, series[i], {});
    x += 42 + svg_text_width(series[i], 12);
  }
  if (drawn == 0) return;
  svg.circle({x + 6, y - 4}, 3.2, {.stroke = measured_colour, .fill = "white", .width = 1.3});
  const std::string measured = drawn < figure.measured.size()
                                   ? fmt::format("measured ({} of {} rows)", drawn, figure.measured.size())
                                   : fmt::format("measured ({})", counted(drawn, "row"));
  svg.text({x + 16, y}, measured, {});
  x += 40 + svg_text_width(measured, 12);
  svg.line({x + 6, y - 12}, {x + 6, y + 2}, {.stroke = forecast_colour, .width = 1, .opacity = 0.6});
  svg.circle({x + 6, y - 4}, 1.9, {.fill = forecast_colour});
  svg.text({x + 16, y}, "predicted for it", {});
}

}  // namespace

std::optional<RooflineFigure> device_roofs(const Device& device, std::vector<DType> types) {
  const auto peak_of = [&](DType type) { return device.peak_or_fallback(type).value_or(FlopsPerSecond(0)); };
  std::stable_sort(types.begin(), types.end(), [&](DType a, DType b) { return peak_of(a) > peak_of(b); });
  if (types.empty() || !device.memory_bandwidth) return std::nullopt;
  const DType math = types.front();
  const FlopsPerSecond peak = peak_of(math);
  if (!(peak.value() > 0)) return std::nullopt;
  const DType used = device.type_or_fallback(math).value_or(math);
  RooflineFigure figure;
  figure.axes = {.peak = peak,
                 .bandwidth = device.memory_bandwidth->value,
                 .peak_label = used == math
                                   ? fmt::format("{} dense peak", dtype_name(math))
                                   : fmt::format("{} dense peak (no {} here)", dtype_name(used), dtype_name(math))};
  for (const DType type : types) {
    const FlopsPerSecond lower = peak_of(type);
    if (lower >= peak || !(lower.value() > 0)) continue;
    if (!figure.lower_peaks.empty() && figure.lower_peaks.back().second == lower) {
      figure.lower_peaks.back().first += fmt::format(", {}", dtype_name(type));
    } else {
      figure.lower_peaks.emplace_back(std::string(dtype_name(type)), lower);
    }
  }
  return figure;
}

std::string roofline_svg(const RooflineFigure& figure) {
  const Frame frame = frame_of(figure);
  const std::vector<const MeasuredMark*> measured = picked(figure.measured);
  Svg svg(width, height, figure.title);
  svg.text({left, 32}, figure.title, {.size = 17, .bold = true});
  svg.text({left, 54}, figure.subtitle, {.size = 12, .fill = "#52606d"});
  draw_axes(svg, frame);
  const std::vector<Roof> roofs = roofs_of(frame, figure);
  for (const Roof& roof : roofs) svg.polyline(roof.points, roof.style);
  const bool few = are_few(figure.predicted);
  if (!few) draw_predicted(svg, frame, figure.predicted);
  draw_measured(svg, frame, measured);
  for (const Roof& roof : roofs) {
    if (!roof.label.empty()) svg.text(roof.label_at, roof.label, roof.label_style);
  }
  if (few) draw_predicted(svg, frame, figure.predicted);
  draw_legend(svg, figure, measured.size());
  return svg.finish();
}

}  // namespace foretoken
