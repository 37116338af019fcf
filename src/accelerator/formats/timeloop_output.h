// Mappings and results in the forms that Timeloop writes, for the scripts that read those.
#pragma once

#include <string>

#include "accelerator/architecture.h"
#include "accelerator/evaluator.h"
#include "accelerator/mapping.h"
#include "accelerator/problem.h"

namespace foretoken {

// A `mapping:` section that reads back as the same mapping. InputError where a level spreads one dimension both across
// and down, which the format cannot say.
std::string timeloop_map_yaml(const Mapping& mapping, const Architecture& architecture, const Problem& problem);

// The loops as in Timeloop's .map.txt: for each level what it keeps, then its loops between bars.
std::string timeloop_map_text(const Mapping& mapping, const Architecture& architecture, const Problem& problem);

// Level by level as in Timeloop's .stats.txt, with a summary at the end.
std::string timeloop_stats_text(const Evaluation& evaluation, const Mapping& mapping, const Architecture& architecture,
                                const Problem& problem);

}  // namespace foretoken
