#include "report/edge/edge_model_report.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/counted.h"
#include "base/text.h"
#include "model/onnx/node_view.h"
#include "report/drawing/html_page.h"
#include "report/parts/json_parts.h"
#include "report/parts/table.h"
#include "report/parts/time_bars.h"

namespace foretoken {
namespace {

constexpr const char* no_power = "the device's file gives no power";
constexpr size_t longest_in_figure = 20;

std::string title_of(const EdgeModelReport& report) {
  const std::string& name = report.graph.name.empty() ? report.graph.source : report.graph.name;
  return fmt::format("{} on {}, {} {}, {}", name, edge_device_title(report.device_name, report.predictor),
                     report.predictor.runtime, report.predictor.runtime_version, counted(report.threads, "thread"));
}

const EdgeStep& step_of(const EdgeModelReport& report, const EdgeStepTime& time) {
  return report.lowering.steps[time.step];
}

// "Conv+Relu conv_3": the operators of a step, and its last node.
std::string operators_text(const EdgeModelReport& report, const EdgeStep& step) {
  std::string text;
  for (const int64_t node : step.nodes) {
    if (!text.empty()) text += "+";
    text += operation_text(report.graph.nodes[static_cast<size_t>(node)]);
  }
  return text;
}

std::string kernel_text_of(const EdgeStep& step) {
  const EdgeKernel& kernel = step.calls.front().kernel;
  std::string text = fmt::format("{} {}", edge_kind_name(kernel.kind), edge_parameters(kernel));
  if (step.calls.size() > 1) text += fmt::format(" and {} more", step.calls.size() - 1);
  return text;
}

std::vector<EdgeStepTime> longest_steps(const EdgeModelReport& report, size_t most) {
  std::vector<EdgeStepTime> steps = report.estimate.steps;
  if (most == 0) return steps;
  std::stable_sort(steps.begin(), steps.end(),
                   [](const EdgeStepTime& a, const EdgeStepTime& b) { return a.seconds.value > b.seconds.value; });
  if (steps.size() > most) steps.resize(most);
  return steps;
}

double of_best(double least, double seconds) {
  return seconds > 0 ? 100 * least / seconds : 0;
}

std::string step_table(const EdgeModelReport& report, size_t most) {
  Table table({{"operators", Table::Align::left},
               {"kernel", Table::Align::left},
               {"time"},
               {"share"},
               {"of best"},
               {"mostly", Table::Align::left}});
  for (const EdgeStepTime& time : longest_steps(report, most)) {
    const EdgeStep& step = step_of(report, time);
    table.add({operators_text(report, step), kernel_text_of(step), duration_text(time.seconds.value),
               fmt::format("{:.1f}%", 100 * time.seconds.value / report.estimate.seconds.value),
               fmt::format("{:.0f}%", of_best(time.least_seconds, time.seconds.value)),
               fmt::format("{} {:.0f}%", time.largest.name, 100 * time.largest_share)});
  }
  return table.text();
}

std::string kind_table(const EdgeModelReport& report) {
  Table table({{"kind", Table::Align::left}, {"calls"}, {"FLOPs"}, {"bytes"}, {"time"}, {"share"}, {"of best"}});
  for (const EdgeKindTime& time : report.estimate.kinds) {
    table.add({std::string(edge_kind_name(time.kind)), fmt::format("{}", time.calls),
               count_text(time.work.flops.value()), bytes_text(time.work.bytes().value()), duration_text(time.seconds),
               fmt::format("{:.1f}%", 100 * time.seconds / report.estimate.seconds.value),
               fmt::format("{:.0f}%", of_best(time.least_seconds, time.seconds))});
  }
  return table.text();
}

std::string model_energy_text(const EdgeModelReport& report) {
  const std::optional<Estimate>& joules = report.estimate.joules;
  return joules ? fmt::format("{:.4g} J ({:.4g} to {:.4g})", joules->value, joules->low, joules->high)
                : fmt::format("not known: {}", no_power);
}

}  // namespace

std::string edge_device_title(const std::string& name, const EdgePredictor& predictor) {
  return name.empty() ? predictor.device : fmt::format("{} ({})", predictor.device, name);
}

std::string edge_model_text(const EdgeModelReport& report, size_t most) {
  const EdgeModelEstimate& estimate = report.estimate;
  std::string text =
      wrap_lines(fmt::format("{}: {}\n", title_of(report), interval_text(estimate.seconds)), page_width(), 2);
  std::string sure;
  for (const auto& [kind, seconds] : estimate.seconds_by_confidence)
    sure += fmt::format("{}{:.0f}% {}", sure.empty() ? "" : ", ", 100 * seconds / estimate.seconds.value,
                        confidence_name(kind));
  text += fmt::format("  confidence  {}\n  memory      {} of weights, {} of activations at most\n", sure,
                      bytes_text(report.memory.weights.value()), bytes_text(report.memory.activations.value()));
  text += fmt::format("  energy      {}\n  runtime     {} for the call, {} for operators that compute nothing\n\n",
                      model_energy_text(report), duration_text(estimate.call_seconds),
                      duration_text(estimate.dispatch_seconds));
  text += step_table(report, most);
  if (most > 0 && estimate.steps.size() > most)
    text += fmt::format("{} of {} steps; {{all}} shows the others\n", most, estimate.steps.size());
  text += "\n" + kind_table(report);
  text += "of best: compared with the best rate in this device's sweep\n";
  if (!report.advice.empty()) {
    text += "\nWhat to change:\n";
    for (const EdgeAdvice& advice : report.advice) text += wrap_lines("- " + advice.text + "\n", page_width(), 2);
  }
  text += batches_text(report.batches);
  for (const std::string& note : report.lowering.notes) text += wrap_lines("note: " + note + "\n", page_width(), 2);
  return text;
}

Json edge_model_json(const EdgeModelReport& report) {
  const EdgeModelEstimate& estimate = report.estimate;
  Json steps = Json::array(), kinds = Json::array(), advice = Json::array();
  for (const EdgeStepTime& time : estimate.steps) {
    const EdgeStep& step = step_of(report, time);
    Json nodes = Json::array();
    for (const int64_t node : step.nodes) nodes.push(report.graph.nodes[static_cast<size_t>(node)].name);
    steps.push(Json::object({{"operators", operators_text(report, step)},
                             {"kernel", edge_kind_name(step.calls.front().kernel.kind)},
                             {"params", edge_parameters(step.calls.front().kernel)},
                             {"calls", step.calls.size()},
                             {"rule", step.rule.empty() ? Json() : Json(step.rule)},
                             {"seconds", time.seconds.value},
                             {"low", time.seconds.low},
                             {"high", time.seconds.high},
                             {"confidence", confidence_name(time.seconds.kind)},
                             {"least_seconds", time.least_seconds},
                             {"flops", step.flops.value()},
                             {"largest_term", time.largest.name},
                             {"largest_share", time.largest_share},
                             {"nodes", std::move(nodes)}}));
  }
  for (const EdgeKindTime& time : estimate.kinds) {
    kinds.push(Json::object({{"kind", edge_kind_name(time.kind)},
                             {"calls", time.calls},
                             {"seconds", time.seconds},
                             {"least_seconds", time.least_seconds},
                             {"work", to_json(time.work)}}));
  }
  for (const EdgeAdvice& own : report.advice) advice.push(Json::object({{"share", own.share}, {"text", own.text}}));
  Json confidence = Json::object();
  for (const auto& [kind, seconds] : estimate.seconds_by_confidence)
    confidence.set(std::string(confidence_name(kind)), seconds / estimate.seconds.value);
  Json notes = Json::array();
  for (const std::string& note : report.lowering.notes) notes.push(note);
  return Json::object({{"model", report.graph.name},
                       {"device", report.predictor.device},
                       {"runtime", report.predictor.runtime},
                       {"fusion", report.rules.runtime},
                       {"threads", report.threads},
                       {"seconds", to_json(estimate.seconds)},
                       {"call_seconds", estimate.call_seconds},
                       {"dispatch_seconds", estimate.dispatch_seconds},
                       {"share_by_confidence", std::move(confidence)},
                       {"weight_bytes", report.memory.weights.value()},
                       {"activation_bytes", report.memory.activations.value()},
                       {"joules", estimate.joules ? to_json(*estimate.joules) : Json()},
                       {"no_joules", estimate.joules ? Json() : Json(no_power)},
                       {"kinds", std::move(kinds)},
                       {"advice", std::move(advice)},
                       {"batches", batches_json(report.batches)},
                       {"notes", std::move(notes)},
                       {"steps", std::move(steps)}});
}

std::string edge_model_svg(const EdgeModelReport& report) {
  const double whole = report.estimate.seconds.value;
  std::vector<TimeBar> kinds, steps;
  for (const EdgeKindTime& time : report.estimate.kinds)
    kinds.push_back({.name = std::string(edge_kind_name(time.kind)), .seconds = time.seconds});
  for (const EdgeStepTime& time : longest_steps(report, longest_in_figure))
    steps.push_back({.name = kernel_text_of(step_of(report, time)), .seconds = time.seconds.value});
  const double kinds_top = 70, steps_top = kinds_top + 20 + time_bars_height(kinds.size());
  Svg svg(time_bars_width, steps_top + time_bars_height(steps.size()), title_of(report));
  svg.text({24, 30}, title_of(report), {.size = 15, .bold = true});
  svg.text({24, 48}, interval_text(report.estimate.seconds), {.size = 12});
  draw_time_bars(svg, kinds_top, "By kind of kernel", kinds, whole);
  draw_time_bars(svg, steps_top, "The longest steps", steps, whole);
  return svg.finish();
}

std::string edge_model_html(const EdgeModelReport& report) {
  HtmlPage page(title_of(report));
  page.figure(edge_model_svg(report), "Time by kernel");
  page.preformatted(edge_model_text(report, 0));
  return page.finish();
}

}  // namespace foretoken
