#include "report/training/rlhf_report.h"

#include <fmt/format.h>

#include "base/counted.h"
#include "base/text.h"
#include "report/parts/json_parts.h"
#include "report/parts/table.h"

namespace foretoken {

std::string rlhf_text(const RlhfReport& report) {
  const RlhfPlan& plan = report.plan;
  const RlhfIteration& iteration = report.iteration;
  std::string text = fmt::format(
      "{} with {} on {} ({}), {}{}: an iteration of {} x {} takes about {}.\n", report.model, plan.algorithm.name,
      counted(plan.devices, "device"), report.cluster, rlhf_placement_name(plan.placement),
      plan.timing == RlhfTiming::one_step_behind ? ", one step behind" : "", counted(plan.prompts, "prompt"),
      counted(plan.algorithm.samples_per_prompt, "answer"), interval_text(report.seconds));
  text += fmt::format("  answers   {} tokens in total, the longest about {:.0f}; {} tokens/s, including prompts\n",
                      count_text(iteration.response_tokens), iteration.longest_response,
                      count_text(iteration.tokens_per_second));
  for (const RlhfPool& pool : iteration.pools) {
    text += fmt::format("  pool      {}: {}, busy {:.1f}% of the time\n", pool.name, counted(pool.devices, "device"),
                        100 * pool.busy);
  }
  text = wrap_lines(text, page_width(), 12) + "\nWhere the time goes:\n";
  Table table({{"part", Table::Align::left}, {"time"}, {"share"}, {"", Table::Align::left}});
  for (const RlhfPart& part : iteration.parts) {
    if (part.seconds == 0) continue;
    table.add({part.name, duration_text(part.seconds),
               part.hidden ? "hidden" : fmt::format("{:.1f}%", 100 * part.seconds / iteration.seconds),
               bar(std::min(1.0, part.seconds / iteration.seconds), 20)});
  }
  return text + table.text();
}

Json rlhf_json(const RlhfReport& report) {
  const RlhfPlan& plan = report.plan;
  const RlhfIteration& iteration = report.iteration;
  Json parts = Json::array(), pools = Json::array();
  for (const RlhfPart& part : iteration.parts) {
    parts.push(Json::object({{"name", part.name}, {"seconds", part.seconds}, {"hidden", part.hidden}}));
  }
  for (const RlhfPool& pool : iteration.pools) {
    pools.push(Json::object({{"name", pool.name}, {"devices", pool.devices}, {"busy", pool.busy}}));
  }
  return Json::object({{"model", report.model},
                       {"cluster", report.cluster},
                       {"algorithm", plan.algorithm.name},
                       {"placement", rlhf_placement_name(plan.placement)},
                       {"one_step_behind", plan.timing == RlhfTiming::one_step_behind},
                       {"devices", plan.devices},
                       {"prompts", plan.prompts},
                       {"samples_per_prompt", plan.algorithm.samples_per_prompt},
                       {"seconds", iteration.seconds},
                       {"intervals", Json::object({{"seconds", to_json(report.seconds)}})},
                       {"tokens_per_second", iteration.tokens_per_second},
                       {"response_tokens", iteration.response_tokens},
                       {"longest_response_tokens", iteration.longest_response},
                       {"parts", std::move(parts)},
                       {"pools", std::move(pools)}});
}

}  // namespace foretoken
