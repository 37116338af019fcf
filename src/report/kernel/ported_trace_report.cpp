#include "report/kernel/ported_trace_report.h"

#include <fmt/format.h>

#include "base/text.h"
#include "report/parts/json_parts.h"
#include "report/parts/table.h"

namespace foretoken {
namespace {

Estimate in_seconds(const Estimate& microseconds) {
  return scaled(microseconds, 1e-6);
}

std::string_view basis_text(PortBasis basis) {
  switch (basis) {
    case PortBasis::estimates:
      return "kernel estimates";
    case PortBasis::sheet:
      return "spec sheets";
    case PortBasis::kept:
      return "unchanged";
  }
  return "";
}

double percent(double part, double whole) {
  return whole > 0 ? 100 * part / whole : 0;
}

std::vector<std::string> sentences(const PortedTrace& ported, const PortOrigin& origin) {
  const auto share = [&](PortBasis basis) { return percent(ported.measured_us_by(basis), ported.measured_us); };
  std::vector<std::string> lines = {fmt::format(
      "{:.0f}% of the measured kernel time is scaled by estimates of the same kernel on both GPUs, {:.0f}% by the "
      "ratio "
      "of peak rates or bandwidths (kernels without sizes), {:.0f}% stays as measured (communication, host copies).",
      share(PortBasis::estimates), share(PortBasis::sheet), share(PortBasis::kept))};
  if (ported.sized_measured_us > 0) {
    lines.push_back(
        fmt::format("Check: kernels with known sizes took {} on {}; the estimates say {} ({:+.0f}%).",
                    duration_text(ported.sized_measured_us * 1e-6), origin.from.title,
                    duration_text(ported.sized_predicted_us * 1e-6),
                    percent(ported.sized_predicted_us - ported.sized_measured_us, ported.sized_measured_us)));
  }
  if (share(PortBasis::sheet) > 30) {
    lines.emplace_back(
        "Many kernels have no sizes: record the trace with record_shapes=True and without CUDA graphs for narrower "
        "intervals.");
  }
  lines.emplace_back("The host launches kernels as fast as in the trace.");
  return lines;
}

}  // namespace

std::string ported_trace_text(const PortedTrace& ported, const PortOrigin& origin) {
  const Estimate span = in_seconds(ported.ported_span_us);
  const double measured_span = ported.measured_span_us * 1e-6;
  std::string text = wrap_lines(
      fmt::format("{}: {} kernels, {} on {}.\nOn {}: {}, {:.2f}x the speed.\nKernels alone: {} measured, {}.",
                  origin.source, ported.kernels, duration_text(measured_span), origin.from.title, origin.to.title,
                  interval_text(span), span.value > 0 ? measured_span / span.value : 1,
                  duration_text(ported.measured_us * 1e-6), interval_text(in_seconds(ported.ported_us))),
      page_width, 2);
  Table table({{"kernels", Table::Align::left},
               {"count"},
               {"measured"},
               {"ported"},
               {"90% interval"},
               {"scaled by", Table::Align::left}});
  for (const PortedClass& one : ported.classes) {
    const Estimate seconds = in_seconds(one.ported_us);
    table.add({one.name, fmt::format("{}", one.kernels), duration_text(one.measured_us * 1e-6),
               duration_text(seconds.value),
               fmt::format("{} to {}", duration_text(seconds.low), duration_text(seconds.high)),
               std::string(basis_text(one.basis))});
  }
  text += "\n" + table.text() + "\n";
  for (const std::string& line : sentences(ported, origin)) text += wrap_lines(line + "\n", page_width, 2);
  return text;
}

Json ported_trace_json(const PortedTrace& ported, const PortOrigin& origin) {
  Json classes = Json::array(), notes = Json::array();
  for (const PortedClass& one : ported.classes) {
    classes.push(Json::object({{"name", one.name},
                               {"kernels", one.kernels},
                               {"measured_seconds", one.measured_us * 1e-6},
                               {"seconds", to_json(in_seconds(one.ported_us))},
                               {"scaled_by", port_basis_name(one.basis)}}));
  }
  for (const std::string& line : sentences(ported, origin)) notes.push(line);
  return Json::object({{"source", origin.source},
                       {"from", origin.from.name},
                       {"to", origin.to.name},
                       {"kernels", ported.kernels},
                       {"measured_seconds", ported.measured_span_us * 1e-6},
                       {"seconds", to_json(in_seconds(ported.ported_span_us))},
                       {"measured_kernel_seconds", ported.measured_us * 1e-6},
                       {"kernel_seconds", to_json(in_seconds(ported.ported_us))},
                       {"classes", std::move(classes)},
                       {"notes", std::move(notes)}});
}

}  // namespace foretoken
