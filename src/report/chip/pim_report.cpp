#include "report/chip/pim_report.h"

#include <array>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "base/text.h"
#include "report/parts/json_parts.h"
#include "report/parts/table.h"

namespace foretoken {
namespace {

using Phase = std::pair<std::string_view, Estimate PimEstimate::*>;
constexpr std::array<Phase, 4> pim_phases = {{{"to_dpus", &PimEstimate::to_dpus},
                                              {"kernel", &PimEstimate::kernel},
                                              {"between_dpus", &PimEstimate::between_dpus},
                                              {"from_dpus", &PimEstimate::from_dpus}}};

}  // namespace

std::string pim_text(const PimReport& report) {
  const PimEstimate& estimate = report.estimate;
  const Estimate total = estimate.total();
  std::string text = wrap_lines(
      fmt::format("{} of {} on {} DPUs of {} with {} tasklets each: {}; the kernel is limited by {}.\n\n",
                  report.program, report.size, report.kernel.dpus, report.device.name, report.kernel.tasklets,
                  interval_text(total), estimate.memory_bound() ? "the DPUs' memory" : "instructions"),
      page_width(), 2);
  Table table({{.title = "phase", .align = Table::Align::left},
               {.title = "time"},
               {.title = "low (90%)"},
               {.title = "high"},
               {.title = "share"},
               {.title = "based on", .align = Table::Align::left}});
  for (const auto& [name, part] : pim_phases) {
    const Estimate& seconds = estimate.*part;
    if (seconds.value <= 0) continue;
    table.add({std::string(name), duration_text(seconds.value), duration_text(seconds.low), duration_text(seconds.high),
               fmt::format("{:.0f}%", 100 * seconds.value / total.value), std::string(confidence_name(seconds.kind))});
  }
  return text + table.text();
}

Json pim_json(const PimReport& report) {
  Json json = Json::object({{"device", report.device.name},
                            {"program", report.program},
                            {"size", report.size},
                            {"dpus", report.kernel.dpus},
                            {"tasklets", report.kernel.tasklets},
                            {"seconds", to_json(report.estimate.total())},
                            {"bound", report.estimate.memory_bound() ? "memory" : "instructions"},
                            {"pipeline_cycles", report.estimate.pipeline_cycles},
                            {"dma_cycles", report.estimate.dma_cycles}});
  for (const auto& [name, part] : pim_phases) json.set(fmt::format("{}_seconds", name), to_json(report.estimate.*part));
  return json;
}

}  // namespace foretoken
