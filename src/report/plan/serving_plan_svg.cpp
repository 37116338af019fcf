#include <algorithm>

#include <fmt/format.h>

#include "base/text.h"
#include "report/drawing/axis.h"
#include "report/drawing/svg.h"
#include "report/plan/serving_plan_report.h"

namespace foretoken {
namespace {

constexpr double plan_width = 920, plan_height = 560;
constexpr double plan_left = 90, plan_right = plan_width - 30, plan_top = 60, plan_bottom = plan_height - 70;
constexpr std::string_view run_colour = "#9fb3c8", frontier_colour = "#2374ab", winner_colour = "#c81d25";
constexpr std::string_view limit_colour = "#f08a24";

struct PlanFrame {
  Axis across, up;
  SvgPoint at(double user, double device) const { return {across.position(user), up.position(device)}; }
};

void draw_plan_axes(Svg& svg, const PlanFrame& frame) {
  for (const double tick : frame.across.ticks()) {
    const double x = frame.across.position(tick);
    svg.line({x, plan_top}, {x, plan_bottom}, {.stroke = grid_colour});
    svg.text({x, plan_bottom + 18}, number_text(tick), {.size = 11, .anchor = SvgAnchor::middle});
  }
  for (const double tick : frame.up.ticks()) {
    const double y = frame.up.position(tick);
    svg.line({plan_left, y}, {plan_right, y}, {.stroke = grid_colour});
    svg.text({plan_left - 8, y + 4}, number_text(tick), {.size = 11, .anchor = SvgAnchor::end});
  }
  svg.text({(plan_left + plan_right) / 2, plan_bottom + 44}, "tokens/s per user", {.anchor = SvgAnchor::middle});
  svg.text({24, (plan_top + plan_bottom) / 2}, "output tokens/s per GPU",
           {.anchor = SvgAnchor::middle, .rotation = -90});
}

}  // namespace

std::string serving_plan_svg(const ServingPlanReport& report) {
  const ServingSearchResult& result = report.result;
  double most_user = 1, most_device = 1;
  for (const FrontierRun& one : result.frontier) {
    most_user = std::max(most_user, one.tokens_per_s_of_user * 1.1);
    most_device = std::max(most_device, one.tokens_per_s_of_device * 1.1);
  }
  const PlanFrame frame{.across = Axis::linear(0, most_user, plan_left, plan_right),
                        .up = Axis::linear(0, most_device, plan_bottom, plan_top)};
  Svg svg(plan_width, plan_height, "Speed per user against throughput per GPU");
  svg.text({plan_left, 34}, fmt::format("{}: runs within the limits", report.question.model.served_name()),
           {.size = 15, .bold = true});
  draw_plan_axes(svg, frame);
  const PlanPoint* winner = result.winner();
  for (const PlanPoint& point : result.points) {
    for (const PlanRun& run : point.runs) {
      if (!run.attained || run.tokens_per_s_of_user == 0) continue;
      const double each = run.output_tokens_per_s / static_cast<double>(point.layout.devices());
      svg.circle(frame.at(run.tokens_per_s_of_user, each), &point == winner ? 5 : 3,
                 {.fill = &point == winner ? winner_colour : run_colour},
                 fmt::format("{} on {}: {:.2f} requests/s", layout_text(point.layout), point.layout.pool.engine.device,
                             run.rate));
    }
  }
  std::vector<SvgPoint> line;
  for (const FrontierRun& one : result.frontier) {
    line.push_back(frame.at(one.tokens_per_s_of_user, one.tokens_per_s_of_device));
  }
  if (line.size() > 1) svg.polyline(line, {.stroke = frontier_colour, .width = 2});
  for (const LatencySlo& slo : report.question.slos) {
    if (slo.metric != SloMetric::tpot) continue;
    const double x = frame.across.position(1e3 / slo.limit_ms);
    svg.line({x, plan_top}, {x, plan_bottom}, {.stroke = limit_colour, .width = 2, .dash = "6 4"});
    svg.text({x + 6, plan_top + 14}, slo_text(slo), {.size = 11, .fill = limit_colour, .halo = true});
  }
  return svg.finish();
}

}  // namespace foretoken
