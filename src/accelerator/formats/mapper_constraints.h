// What the files about an accelerator demand of its mappings, as the mapper takes it.
#pragma once

#include <span>

#include "accelerator/formats/architecture_json.h"
#include "accelerator/formats/timeloop_directive.h"
#include "accelerator/mapper/constraints.h"

namespace foretoken {

// A level that lists what it keeps must keep it; what it bypasses, or does not list, passes by.
Constraints design_constraints(const AcceleratorDesign& design, const Problem& problem);

// Timeloop's: temporal and spatial factors and orders, tensors kept and bypassed, least use. InputError, with file and
// line, for a level, dimension or tensor that is not there.
Constraints directive_constraints(std::span<const TimeloopDirective> directives, const Architecture& architecture,
                                  const Problem& problem);

}  // namespace foretoken
