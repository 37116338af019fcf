#include "report/page/step_parts.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/text.h"
#include "report/drawing/line_chart.h"
#include "report/kernel/roofline_svg.h"

namespace foretoken {
namespace {

constexpr size_t most_operators_of_bar = 8, most_operators_of_roofline = 6;  // the latter of each step

// An operator of a step that multiplies: the calls of one name, wherever in the step they are.
struct PlacedOperator {
  std::string name;
  Work work;
  double value = 0, low = 0, high = 0;  // seconds
  std::string bound;                    // of its slowest kernel
  double slowest = 0;
};

std::vector<PlacedOperator> placed_operators(const StepEstimate& step) {
  std::vector<PlacedOperator> placed;
  for (const StageEstimate& stage : step.stages) {
    for (const TimedOperator& timed : stage.operators) {
      if (!timed.kernel || !(timed.work.flops.value() > 0) || !(timed.work.bytes().value() > 0)) continue;
      auto found = std::find_if(placed.begin(), placed.end(), [&](const PlacedOperator& one) {
        return one.name == timed.call.name && one.work.math == timed.work.math;
      });
      if (found == placed.end()) {
        found = placed.insert(placed.end(), PlacedOperator{.name = timed.call.name, .work = {}, .bound = {}});
        found->work.math = timed.work.math;
      }
      found->work.flops += timed.work.flops;
      found->work.weights_read += timed.work.weights_read;
      found->work.activations_read += timed.work.activations_read;
      found->work.written += timed.work.written;
      found->value += timed.seconds.value;
      found->low += timed.seconds.low;
      found->high += timed.seconds.high;
      if (timed.seconds.value <= found->slowest) continue;
      found->slowest = timed.seconds.value;
      found->bound = bound_name(timed.kernel->bound);
    }
  }
  std::stable_sort(placed.begin(), placed.end(),
                   [](const PlacedOperator& a, const PlacedOperator& b) { return a.value > b.value; });
  if (placed.size() > most_operators_of_roofline) placed.resize(most_operators_of_roofline);
  return placed;
}

}  // namespace

void add_operator_times(HtmlPage& page, const std::vector<TypicalStep>& steps, const std::string& title,
                        const std::string& caption) {
  double busy = 0, shown = 0;
  for (const TypicalStep& typical : steps) busy += typical.share.seconds;
  std::vector<BarPart> parts;
  const std::vector<OperatorShare> shares = operator_shares(steps);
  for (size_t i = 0; i < std::min(most_operators_of_bar, shares.size()); ++i) {
    parts.push_back({shares[i].name, shares[i].seconds, duration_text(shares[i].seconds)});
    shown += shares[i].seconds;
  }
  if (busy - shown > 1e-9 * busy) parts.push_back({"other", busy - shown, duration_text(busy - shown)});
  page.figure(parts_bar_svg(title, parts), caption);
}

void add_roofline(HtmlPage& page, const std::vector<TypicalStep>& steps, const Device& device) {
  std::vector<DType> types;
  std::vector<std::vector<PlacedOperator>> placed;
  for (const TypicalStep& typical : steps) {
    placed.push_back(placed_operators(typical.step));
    for (const PlacedOperator& one : placed.back()) {
      if (std::find(types.begin(), types.end(), one.work.math) == types.end()) types.push_back(one.work.math);
    }
  }
  std::optional<RooflineFigure> figure = device_roofs(device, types);
  if (!figure) return;
  figure->title = fmt::format("The model's operators on the roofline of {}", device.title);
  figure->subtitle = "the slowest operators that multiply, at their predicted times, with 90% intervals";
  std::vector<std::vector<std::string>> rows;
  for (size_t i = 0; i < steps.size(); ++i) {
    const std::string phase(step_phase_name(steps[i].share.phase));
    figure->series.push_back(phase);
    for (const PlacedOperator& one : placed[i]) {
      const double intensity = one.work.flops.value() / one.work.bytes().value();
      const double rate = one.work.flops.value() / one.value;
      const double peak = device.peak_or_fallback(one.work.math).value_or(FlopsPerSecond(0)).value();
      const double roof = std::min(peak, intensity * figure->axes.bandwidth.value());
      const std::string tag = fmt::format("{}", rows.size() + 1);
      figure->predicted.push_back({.flops_per_byte = intensity,
                                   .rate = FlopsPerSecond(rate),
                                   .low = FlopsPerSecond(one.work.flops.value() / one.high),
                                   .high = FlopsPerSecond(one.work.flops.value() / one.low),
                                   .label = fmt::format("{} {}", phase, one.name),
                                   .tag = tag,
                                   .series = i});
      rows.push_back({fmt::format("{} {}", tag, one.name), phase,
                      fmt::format("{:.0f}%", 100 * one.value / steps[i].step.seconds.value),
                      intensity >= 100 ? fmt::format("{:.0f}", intensity) : fmt::format("{:.3g}", intensity),
                      rate_text(rate, "FLOP/s"), roof > 0 ? share_of_roof_text(rate / roof) : "", one.bound});
    }
  }
  if (rows.empty()) return;
  page.heading("Roofline");
  page.figure(roofline_svg(*figure), "Left of the ridge, memory limits an operator; right of it, arithmetic does");
  page.table({"operator", "step", "of the step", "FLOP/byte", "achieves", "of the roof", "bound by"}, rows);
}

}  // namespace foretoken
