#include "report/step/graph_run_report.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/text.h"
#include "kernel/kernel.h"
#include "report/drawing/html_page.h"
#include "report/parts/json_parts.h"
#include "report/parts/table.h"
#include "report/parts/time_bars.h"

namespace foretoken {
namespace {

std::vector<const TimedOperator*> longest_first(const StageEstimate& run) {
  std::vector<const TimedOperator*> operators;
  for (const TimedOperator& timed : run.operators) operators.push_back(&timed);
  std::stable_sort(operators.begin(), operators.end(),
                   [](const TimedOperator* a, const TimedOperator* b) { return a->seconds.value > b->seconds.value; });
  return operators;
}

}  // namespace

std::string graph_run_text(const GraphRunReport& report, size_t most) {
  const StageEstimate& run = report.run;
  std::string text = wrap_lines(fmt::format("{} on {}: {}; one kernel per node, run in sequence.\n\n",
                                            report.graph.name, report.device.name, interval_text(run.kernels)),
                                page_width(), 2);
  Table table({{.title = "node", .align = Table::Align::left},
               {.title = "family", .align = Table::Align::left},
               {.title = "calls"},
               {.title = "time"},
               {.title = "share"},
               {.title = "bound", .align = Table::Align::left},
               {.title = "based on", .align = Table::Align::left}});
  const std::vector<const TimedOperator*> operators = longest_first(run);
  const size_t shown = most == 0 ? operators.size() : std::min(most, operators.size());
  for (size_t i = 0; i < shown; ++i) {
    const TimedOperator& timed = *operators[i];
    table.add({timed.call.name, std::string(family_name(timed.call.shape)), fmt::format("{}", timed.call.count),
               duration_text(timed.seconds.value),
               fmt::format("{:.1f}%", 100 * timed.seconds.value / run.kernels.value),
               timed.kernel ? std::string(bound_name(timed.kernel->bound)) : "",
               std::string(confidence_name(timed.seconds.kind))});
  }
  text += table.text();
  if (shown < operators.size()) text += fmt::format("and {} more nodes ({{all}})\n", operators.size() - shown);
  text += fmt::format("\nmemory: {} of weights, {} of activations at most\n", bytes_text(run.memory.weights.value()),
                      bytes_text(run.memory.activations.value()));
  text += batches_text(report.batches);
  for (const std::string& note : report.graph.notes) text += wrap_lines("note: " + note + "\n", page_width(), 2);
  return text;
}

Json graph_run_json(const GraphRunReport& report) {
  const StageEstimate& run = report.run;
  Json nodes = Json::array(), notes = Json::array();
  for (const std::string& note : report.graph.notes) notes.push(note);
  for (const TimedOperator& timed : run.operators) {
    nodes.push(Json::object({{"node", timed.call.name},
                             {"family", std::string(family_name(timed.call.shape))},
                             {"calls", timed.call.count},
                             {"seconds", to_json(timed.seconds)}}));
  }
  return Json::object({{"model", report.graph.name},
                       {"device", report.device.name},
                       {"seconds", to_json(run.kernels)},
                       {"weight_bytes", run.memory.weights.value()},
                       {"activation_bytes", run.memory.activations.value()},
                       {"batches", batches_json(report.batches)},
                       {"notes", std::move(notes)},
                       {"steps", std::move(nodes)}});
}

std::string graph_run_html(const GraphRunReport& report) {
  constexpr size_t most_bars = 20;
  const std::string title = fmt::format("{} on {}", report.graph.name, report.device.name);
  std::vector<TimeBar> bars;
  for (const TimedOperator* timed : longest_first(report.run)) {
    if (bars.size() < most_bars) bars.push_back({.name = timed->call.name, .seconds = timed->seconds.value});
  }
  constexpr double top = 70;
  Svg svg(time_bars_width, top + time_bars_height(bars.size()), title);
  svg.text({24, 30}, title, {.size = 15, .bold = true});
  svg.text({24, 48}, interval_text(report.run.kernels), {.size = 12});
  draw_time_bars(svg, top, "The longest nodes", bars, report.run.kernels.value);
  HtmlPage page(title);
  page.figure(svg.finish(), "Time by node");
  page.preformatted(graph_run_text(report, 0));
  return page.finish();
}

}  // namespace foretoken
