// Timeloop's mappings: directives for each level, as loops.
#pragma once

#include <span>
#include <vector>

#include "accelerator/architecture.h"
#include "accelerator/formats/timeloop_directive.h"
#include "accelerator/mapping.h"
#include "accelerator/problem.h"

namespace foretoken {

// A level keeps every tensor unless a directive says that it bypasses one. Factors multiply to the size of their
// dimension exactly, but where a remainder is written (`N=8,4`) or one factor takes the rest (`N=0`). InputError for an
// unknown target, dimension or tensor, and for factors that do not multiply to the size.
Mapping timeloop_mapping(std::span<const TimeloopDirective> directives, const Architecture& architecture,
                         const Problem& problem);

}  // namespace foretoken
