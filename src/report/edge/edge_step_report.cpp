#include "report/edge/edge_step_report.h"

#include <fmt/format.h>

#include "base/counted.h"
#include "base/text.h"
#include "report/edge/edge_model_report.h"
#include "report/parts/json_parts.h"
#include "report/parts/table.h"

namespace foretoken {
namespace {

std::string edge_formats_text(const EdgeStep& step) {
  for (const EdgeCall& call : step.calls) {
    if (call.scheme != Scheme::fp32) return std::string(facts(call.scheme).name);
    if (is_int8(call.kernel.kind)) return "int8";
    if (is_int4(call.kernel.kind)) return "int4";
  }
  return "fp32";
}

}  // namespace

std::string edge_step_text(const EdgeStepReport& report) {
  const EdgeModelEstimate& estimate = report.estimate;
  const auto tokens = static_cast<double>(report.tokens);
  Table table({{.title = "operator", .align = Table::Align::left},
               {.title = "calls"},
               {.title = "format", .align = Table::Align::left},
               {.title = "time"},
               {.title = "share"},
               {.title = "at least"}});
  for (const EdgeStepTime& time : estimate.steps) {
    const EdgeStep& step = report.lowering.steps[time.step];
    table.add({step.name, fmt::format("{}", step.calls.front().count), edge_formats_text(step),
               duration_text(time.seconds.value),
               fmt::format("{:.1f}%", 100 * time.seconds.value / estimate.seconds.value),
               duration_text(time.least_seconds)});
  }
  std::string text =
      fmt::format("{} {} of {} on {} ({}, {}): {}\n{:.3g} tokens/s ({:.3g} to {:.3g}); weights {}\n\n", report.phase,
                  report.phase == "decode" ? "step" : "pass", report.model,
                  edge_device_title(report.device_name, report.predictor), report.predictor.runtime,
                  counted(report.threads, "thread"), interval_text(estimate.seconds), tokens / estimate.seconds.value,
                  tokens / estimate.seconds.high, tokens / estimate.seconds.low, bytes_text(report.weights.value()));
  text += table.text();
  for (const std::string& note : report.lowering.notes) text += "note: " + note + "\n";
  return wrap_lines(text, page_width(), 2);
}

Json edge_step_json(const EdgeStepReport& report) {
  const EdgeModelEstimate& estimate = report.estimate;
  const auto tokens = static_cast<double>(report.tokens);
  Json steps = Json::array();
  for (const EdgeStepTime& time : estimate.steps) {
    const EdgeStep& step = report.lowering.steps[time.step];
    steps.push(Json::object({{"operator", step.name},
                             {"calls", step.calls.front().count},
                             {"format", edge_formats_text(step)},
                             {"seconds", to_json(time.seconds)},
                             {"least_seconds", time.least_seconds}}));
  }
  Json notes = Json::array();
  for (const std::string& note : report.lowering.notes) notes.push(note);
  return Json::object({{"model", report.model},
                       {"phase", report.phase},
                       {"device", report.predictor.device},
                       {"threads", report.threads},
                       {"seconds", to_json(estimate.seconds)},
                       {"tokens_per_second", tokens / estimate.seconds.value},
                       {"weight_bytes", report.weights.value()},
                       {"steps", std::move(steps)},
                       {"notes", std::move(notes)}});
}

}  // namespace foretoken
