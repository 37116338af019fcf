#include "report/kernel/power_report.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "base/counted.h"
#include "base/text.h"
#include "report/parts/json_parts.h"
#include "report/parts/table.h"

namespace foretoken {
namespace {

double watts_error_percent(const PowerCheck& check) {
  return 100 * (check.predicted.watts.value / check.measured_watts - 1);
}
double slowdown_error_points(const PowerCheck& check) {
  return 100 * (check.predicted.slowdown.value - check.measured_slowdown);
}

bool inside(const Estimate& estimate, double measured) {
  return estimate.low <= measured && measured <= estimate.high;
}

struct Summary {
  size_t n = 0;
  double watts_mean = 0, watts_worst = 0, slowdown_mean = 0, slowdown_worst = 0;  // absolute errors
  double watts_inside = 0, slowdown_inside = 0;                                   // % of rows in the 90% interval
};

// `calibration` has the final half widths; the checks were made before they were known.
Summary summarize(const PowerFit& fit) {
  Summary s;
  for (const PowerCheck& check : fit.left_out) {
    const double watts = std::abs(watts_error_percent(check)), slowdown = std::abs(slowdown_error_points(check));
    s.watts_mean += watts;
    s.slowdown_mean += slowdown;
    s.watts_worst = std::max(s.watts_worst, watts);
    s.slowdown_worst = std::max(s.slowdown_worst, slowdown);
    s.watts_inside += inside(check.predicted.watts, check.measured_watts) ? 100 : 0;
    s.slowdown_inside += inside(check.predicted.slowdown, check.measured_slowdown) ? 100 : 0;
    ++s.n;
  }
  const double n = std::max<double>(1, static_cast<double>(s.n));
  s.watts_mean /= n;
  s.slowdown_mean /= n;
  s.watts_inside /= n;
  s.slowdown_inside /= n;
  return s;
}

std::string with_interval(const Estimate& estimate, double unit, std::string_view name) {
  const auto digits = [&](double value) {
    return std::abs(value / unit) >= 999.5 ? fmt::format("{:.0f}", value / unit) : fmt::format("{:.3g}", value / unit);
  };
  return fmt::format("{} {} ({} to {})", digits(estimate.value), name, digits(estimate.low), digits(estimate.high));
}

std::string joules_text(const Estimate& joules) {
  if (joules.value >= 1) return with_interval(joules, 1, "J");
  return joules.value >= 1e-3 ? with_interval(joules, 1e-3, "mJ") : with_interval(joules, 1e-6, "uJ");
}

}  // namespace

std::string power_text(const KernelPower& power, const Device& device, bool sustained) {
  std::string text = fmt::format("  energy     {} per call at {}, confidence: {}\n", joules_text(power.burst.joules),
                                 with_interval(power.burst.watts, 1, "W"), confidence_name(power.burst.watts.kind));
  if (power.burst_limited) {
    text += fmt::format("  limited    by the board's {:.0f} W: a call takes {} while the board stays at this power\n",
                        device.power_limit->value.value(), duration_text(power.burst_seconds.value));
  }
  if (!sustained) return wrap_lines(text, page_width(), 13);
  const SustainedPower& held = power.sustained;
  text += fmt::format("  sustained  {}: {:.1f}% longer than on a cool board, confidence: {}\n",
                      interval_text(power.sustained_seconds), 100 * (held.slowdown.value - 1),
                      confidence_name(power.sustained_seconds.kind));
  text += fmt::format("  power      {} of a limit of {:.0f} W; {:.0f} W at the burst clock\n",
                      with_interval(held.watts, 1, "W"), device.power_limit->value.value(), held.wanted_watts);
  text += fmt::format("  clock      {:.0f}% of the boost clock", 100 * held.clock_share);
  if (held.clock.value() > 0) text += fmt::format(", {:.0f} MHz", held.clock.value() / mega);
  text += fmt::format("\n  energy     {} per call when sustained\n", joules_text(held.joules));
  return wrap_lines(text, page_width(), 13);
}

Json power_json(const KernelPower& power, bool sustained) {
  Json json = Json::object({{"burst", Json::object({{"watts", to_json(power.burst.watts)},
                                                    {"joules", to_json(power.burst.joules)},
                                                    {"seconds", to_json(power.burst_seconds)},
                                                    {"power_limited", power.burst_limited}})}});
  if (!sustained) return json;
  const SustainedPower& held = power.sustained;
  Json clock = held.clock.value() > 0 ? Json(held.clock.value() / mega) : Json();
  json.set("sustained", Json::object({{"seconds", to_json(power.sustained_seconds)},
                                      {"slowdown", to_json(held.slowdown)},
                                      {"watts", to_json(held.watts)},
                                      {"joules", to_json(held.joules)},
                                      {"clock_mhz", std::move(clock)},
                                      {"clock_share", held.clock_share},
                                      {"wanted_watts", held.wanted_watts},
                                      {"power_limited", held.limited}}));
  return json;
}

std::string power_fit_text(const PowerFit& fit) {
  Table table({{"kernel left out of the fit", Table::Align::left},
               {"W"},
               {"predicted"},
               {"off by %"},
               {"slowdown"},
               {"predicted"},
               {"points"},
               {"MHz"},
               {"predicted"}});
  for (const PowerCheck& check : fit.left_out) {
    table.add({check.name + (check.is_mix ? " (mix)" : ""), fmt::format("{:.0f}", check.measured_watts),
               fmt::format("{:.0f}", check.predicted.watts.value), fmt::format("{:+.1f}", watts_error_percent(check)),
               fmt::format("{:.3f}", check.measured_slowdown), fmt::format("{:.3f}", check.predicted.slowdown.value),
               fmt::format("{:+.1f}", slowdown_error_points(check)),
               fmt::format("{:.0f}", check.measured_clock_hertz / mega),
               fmt::format("{:.0f}", check.predicted.clock.value() / mega)});
  }
  const Summary s = summarize(fit);
  std::string text = fmt::format("{}\n{}", fit.calibration.device, table.text());
  text += fmt::format("power: mean {:.1f}%, worst {:.1f}%; slowdown: mean {:.1f} points, worst {:.1f}; ", s.watts_mean,
                      s.watts_worst, s.slowdown_mean, s.slowdown_worst);
  text += fmt::format("{}; in the 90% interval: power {:.0f}%, slowdown {:.0f}%\n", counted(s.n, "row"), s.watts_inside,
                      s.slowdown_inside);
  for (size_t k = 0; k < power_constant_count; ++k) {
    text += fmt::format("  {:18} {:.3g}  {}\n", power_constant_facts()[k].name, fit.calibration.constants[k],
                        power_constant_facts()[k].reading);
  }
  return wrap_lines(text, page_width(), 2);
}

Json power_fit_json(const PowerFit& fit) {
  const Summary s = summarize(fit);
  Json rows = Json::array();
  for (const PowerCheck& check : fit.left_out) {
    rows.push(Json::object({{"name", check.name},
                            {"mix", check.is_mix},
                            {"measured_watts", check.measured_watts},
                            {"watts", to_json(check.predicted.watts)},
                            {"measured_slowdown", check.measured_slowdown},
                            {"slowdown", to_json(check.predicted.slowdown)},
                            {"measured_clock_mhz", check.measured_clock_hertz / mega},
                            {"clock_mhz", check.predicted.clock.value() / mega}}));
  }
  return Json::object({{"device", fit.calibration.device},
                       {"n", s.n},
                       {"watts_mape", s.watts_mean},
                       {"watts_worst", s.watts_worst},
                       {"watts_coverage90", s.watts_inside},
                       {"slowdown_mean_points", s.slowdown_mean},
                       {"slowdown_worst_points", s.slowdown_worst},
                       {"slowdown_coverage90", s.slowdown_inside},
                       {"left_out", std::move(rows)}});
}

}  // namespace foretoken
