#include "report/kernel/ported_trace_report.h"

#include <fmt/format.h>

#include "base/counted.h"
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
    case PortBasis::split:
      return "share of the work";
    case PortBasis::network:
      return "network estimates";
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
  std::string shares = fmt::format("{:.0f}% of the measured kernel time is kept as measured", share(PortBasis::kept));
  const auto add = [&](PortBasis basis, std::string_view how) {
    if (share(basis) > 0) shares += fmt::format(", {:.0f}% is {}", share(basis), how);
  };
  add(PortBasis::estimates, "scaled by the ratio of our estimates of the same kernel");
  add(PortBasis::sheet, "scaled by the ratio of peak rates or bandwidths (kernels without sizes)");
  add(PortBasis::split, "scaled by this rank's share of the work under the new plan");
  add(PortBasis::network, "predicted by the network model");
  std::vector<std::string> lines = {shares + "."};
  if (ported.bubble_us.value > 0) {
    lines.push_back(fmt::format("The new pipeline's bubble adds {}.", interval_text(in_seconds(ported.bubble_us))));
  }
  if (ported.tensor_us.value > 0) {
    lines.push_back(fmt::format(
        "The all-reduces of tensor parallelism, which are not in the trace, add {}; two for each time that attention "
        "runs, not hidden behind multiplies, are assumed.",
        interval_text(in_seconds(ported.tensor_us))));
  }
  if (ported.gradients_us.value > 0) {
    lines.push_back(
        fmt::format("The all-reduce of gradients, which is not in the trace, adds {}; 16-bit gradients for the weights "
                    "of the matrix multiplies are assumed.",
                    interval_text(in_seconds(ported.gradients_us))));
  }
  if (ported.lacks_backward) {
    lines.emplace_back(
        "No backward pass was found in the trace: no all-reduce of gradients was added. In training, data-parallel "
        "ranks need one.");
  }
  if (ported.assumes_one_micro_batch) {
    lines.emplace_back(
        "The number of micro-batches is not given: the trace is taken as one micro-batch. If it has several, the "
        "gradients are counted once for each.");
  }
  if (ported.sized_measured_us > 0) {
    lines.push_back(
        fmt::format("Check: kernels with known sizes took {} on {}; the estimates say {} ({:+.0f}%).",
                    duration_text(ported.sized_measured_us * 1e-6), origin.from.title,
                    duration_text(ported.sized_predicted_us * 1e-6),
                    percent(ported.sized_predicted_us - ported.sized_measured_us, ported.sized_measured_us)));
  }
  if (origin.from.vendor != origin.to.vendor) {
    lines.push_back(fmt::format(
        "{} and {} run different kernels. Between NVIDIA and AMD GPUs, ported kernel times were 17 to 23% off on "
        "average; estimates without a trace (foretoken step, foretoken kernel) were 12 to 18% off.",
        origin.from.title, origin.to.title));
  }
  for (const auto& [basis, what_it_does] : {std::pair{PortBasis::kept, "keeps its measured time"},
                                            {PortBasis::split, "is scaled by the layers of a stage"}}) {
    double unpriced_us = 0;
    for (const PortedClass& one : ported.classes) {
      unpriced_us += one.communicates && one.basis == basis ? one.measured_us : 0;
    }
    if (unpriced_us == 0) continue;
    lines.push_back(
        fmt::format("Communication without sizes, or in groups that match neither TP, PP nor DP, {} ({:.0f}% of "
                    "the kernel time).",
                    what_it_does, percent(unpriced_us, ported.measured_us)));
  }
  const bool changes_data = origin.recorded.data > 1 && origin.recorded.data != origin.wanted.data;
  if (changes_data && share(PortBasis::network) == 0) {
    lines.emplace_back(
        "The trace has no data-parallel collectives of known size, so changes in them are not included.");
  }
  if (origin.recorded.pipeline != origin.wanted.pipeline) {
    lines.emplace_back(
        "The kernels and launches of a stage are assumed to be proportional to its layers, with 10% for the embedding "
        "and the head.");
  }
  if (share(PortBasis::sheet) + share(PortBasis::split) > 30) {
    lines.emplace_back(
        "Many kernels have no sizes: record the trace with record_shapes=True and without CUDA graphs for narrower "
        "intervals.");
  }
  lines.emplace_back("The host launches kernels as fast as in the trace.");
  if (!origin.named_in_trace.empty()) {
    lines.push_back(fmt::format("The trace was recorded on {}, but is treated as a trace of {}, as you requested.",
                                origin.named_in_trace, origin.from.title));
  }
  return lines;
}

std::string plan_text(const ParallelPlan& plan) {
  if (rank_count(plan) == 1) return "";
  return fmt::format(" with TP{} PP{} DP{}", plan.tensor, plan.pipeline, plan.data);
}

Json plan_json(const ParallelPlan& plan) {
  return Json::object({{"tensor_parallel_size", plan.tensor},
                       {"pipeline_parallel_size", plan.pipeline},
                       {"data_parallel_size", plan.data}});
}

}  // namespace

std::string ported_trace_text(const PortedTrace& ported, const PortOrigin& origin) {
  const Estimate span = in_seconds(ported.ported_span_us);
  const double measured_span = ported.measured_span_us * 1e-6;
  std::string text =
      wrap_lines(fmt::format("{}: {}, {} on {}{}.\nOn {}{}: {}, {:.2f}x the speed.\nKernels alone: {} measured, {}.",
                             origin.source, counted(ported.kernels, "kernel"), duration_text(measured_span),
                             origin.from.title, plan_text(origin.recorded), origin.to.title, plan_text(origin.wanted),
                             interval_text(span), span.value > 0 ? measured_span / span.value : 1,
                             duration_text(ported.measured_us * 1e-6), interval_text(in_seconds(ported.ported_us))),
                 page_width(), 2);
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
  for (const std::string& line : sentences(ported, origin)) text += wrap_lines(line + "\n", page_width(), 2);
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
                       {"from_plan", plan_json(origin.recorded)},
                       {"to_plan", plan_json(origin.wanted)},
                       {"kernels", ported.kernels},
                       {"measured_seconds", ported.measured_span_us * 1e-6},
                       {"seconds", to_json(in_seconds(ported.ported_span_us))},
                       {"measured_kernel_seconds", ported.measured_us * 1e-6},
                       {"kernel_seconds", to_json(in_seconds(ported.ported_us))},
                       {"bubble_seconds", to_json(in_seconds(ported.bubble_us))},
                       {"tensor_seconds", to_json(in_seconds(ported.tensor_us))},
                       {"gradient_seconds", to_json(in_seconds(ported.gradients_us))},
                       {"measured_share", percent(ported.measured_us_by(PortBasis::kept), ported.measured_us)},
                       {"classes", std::move(classes)},
                       {"notes", std::move(notes)}});
}

}  // namespace foretoken
