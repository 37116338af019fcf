#include "report/graph_run_report.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/text.h"
#include "kernel/kernel.h"
#include "report/json_parts.h"
#include "report/table.h"

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
  std::string text = wrap_lines(fmt::format("{} on {}: {}, each node a kernel of its own, one after the other.\n\n",
                                            report.graph.name, report.device.name, interval_text(run.kernels)),
                                page_width, 2);
  Table table({{.title = "node", .align = Table::Align::left},
               {.title = "family", .align = Table::Align::left},
               {.title = "calls"},
               {.title = "time"},
               {.title = "share"},
               {.title = "bound", .align = Table::Align::left},
               {.title = "rests on", .align = Table::Align::left}});
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
  if (shown < operators.size()) text += fmt::format("and {} more nodes (--all)\n", operators.size() - shown);
  return text + fmt::format("\nmemory: {} of weights, {} of activations at most\n",
                            bytes_text(run.memory.weights.value()), bytes_text(run.memory.activations.value()));
}

Json graph_run_json(const GraphRunReport& report) {
  const StageEstimate& run = report.run;
  Json nodes = Json::array();
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
                       {"steps", std::move(nodes)}});
}

}  // namespace foretoken
