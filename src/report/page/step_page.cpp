#include "report/page/step_page.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/text.h"
#include "report/drawing/line_chart.h"
#include "report/page/step_parts.h"
#include "report/parts/json_parts.h"
#include "report/step/step_report.h"

namespace foretoken {
namespace {

void add_step_memory(HtmlPage& page, const StepEstimate& step) {
  const auto fullest = std::max_element(
      step.stages.begin(), step.stages.end(),
      [](const StageEstimate& a, const StageEstimate& b) { return a.memory.total() < b.memory.total(); });
  if (fullest == step.stages.end()) return;
  const RankMemory& memory = fullest->memory;
  std::vector<BarPart> parts;
  const auto add = [&](const char* name, Bytes bytes) {
    if (bytes.value() > 0) parts.push_back({name, bytes.value(), bytes_text(bytes.value())});
  };
  add("weights", memory.weights);
  add("KV cache", memory.kv_cache);
  add("gradients and optimizer", memory.gradients_and_optimizer);
  add("activations", memory.activations);
  const double total = memory.total().value(), room = step.device_memory.value();
  page.heading("Memory per device");
  page.figure(
      parts_bar_svg(room > 0 ? fmt::format("{} of {}", bytes_text(total), memory_size_text(room)) : bytes_text(total),
                    parts, room),
      total > room && room > 0 ? "It does not fit" : "What this step needs; an engine reserves more for its cache");
}

void add_step_costs(HtmlPage& page, const StepPage& own) {
  if (!own.sustained && !own.rent) return;
  page.heading("Energy and cost");
  if (own.sustained) {
    const SustainedStep& held = *own.sustained;
    page.paragraph(sustained_step_text(held, own.step));
    if (own.step.tokens > 0) {
      // All replicas draw the same, and `tokens` are those of all.
      const double joules = held.joules * static_cast<double>(own.step.plan.data);
      page.paragraph(fmt::format("That is {:.3g} J of board energy per token.", joules / own.step.tokens));
    }
  }
  if (own.rent) add_rent(page, *own.rent);
}

}  // namespace

std::string step_page_html(const StepPage& own) {
  const StepEstimate& step = own.step;
  const std::vector<TypicalStep> steps = {
      {.device = own.device.name,
       .share = {.phase = step.request.phase, .steps = 1, .seconds = step.seconds.value},
       .step = step}};
  HtmlPage page(
      fmt::format("foretoken: a {} step of {}", step_phase_name(step.request.phase), own.model.served_name()));
  page.sentence(step_sentence(step, own.model, own.device));
  page.heading("Where the time goes");
  add_operator_times(page, steps, duration_text(step.seconds.value),
                     step.stages.size() > 1 ? "Operators of all pipeline stages, one stage after the other"
                                            : "Operators of the step; the device waits between kernels");
  add_roofline(page, steps, own.device);
  add_step_memory(page, step);
  add_step_costs(page, own);
  add_trust(page, own.trust);
  page.heading("In full");
  page.preformatted(own.more);
  page.heading("To reproduce");
  page.preformatted(own.command);
  return page.finish();
}

}  // namespace foretoken
