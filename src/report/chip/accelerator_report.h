// One mapping onto an accelerator: tables for people, JSON and CSV for programs.
#pragma once

#include <string>

#include "accelerator/evaluator.h"
#include "base/json.h"

namespace foretoken {

inline constexpr size_t accelerator_page_width = 80;  // columns of a plain terminal

// What was evaluated, with what came out. Looks at its parts, which must outlive it.
struct MappingReport {
  const Architecture& architecture;
  const Problem& problem;
  const Mapping& mapping;
  const Evaluation& evaluation;
};

// Cycles, energy and use of every level, what limits it, the loop nest.
std::string mapping_report_text(const MappingReport& report);
Json mapping_report_json(const MappingReport& report);
// level,tensor,tile_words,instances,reads,fills,updates,energy_pj
std::string mapping_report_csv(const MappingReport& report);

// Bars of energy by level, stacked by tensor, and of how full buffers, links and multipliers are.
std::string mapping_report_svg(const MappingReport& report);

std::string picojoule_text(double picojoules);  // "282.8 uJ"

// One page with all of it, without scripts or other files.
std::string mapping_report_html(const MappingReport& report);

}  // namespace foretoken
