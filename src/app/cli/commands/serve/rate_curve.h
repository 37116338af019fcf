// The run of `serve` at other rates, for its page.
#pragma once

#include <vector>

#include "app/cli/commands/serve/serve_flags.h"
#include "report/page/serving_parts.h"

namespace foretoken {

// The same engines under more and less of the same load; nothing where it has no rate. `own`: of the rate asked for.
std::vector<RatePoint> other_rates(const ServeFlags& flags, std::vector<ReplicaGroup>& groups,
                                   const ServingMetrics& own, const Library& library);

}  // namespace foretoken
