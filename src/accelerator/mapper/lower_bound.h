// What no mapping can beat, whatever its loops: proven lower bounds of energy and cycles.
#pragma once

#include "accelerator/evaluator.h"
#include "accelerator/mapper/mapping_space.h"

namespace foretoken {

struct MappingBound {
  double energy_pj = 0;
  double cycles = 0;
};

// Energy: operations; for each tensor the cheapest levels to keep it at, each word moved at least once between them and
// each operand of a multiplier read from the innermost with the widest multicast; for products of matrices also the
// words that must cross into storage of S words, at least 2 m n k / sqrt(S) - 2 S (Smith, Lowery, Langou, van de
// Geijn, "A tight I/O lower bound for matrix multiplication", 2019).
// Cycles: operations over the multipliers that factors can reach, and the outermost level's bandwidth.
MappingBound lower_bound(const Architecture& architecture, const Problem& problem, const MappingSpace& space,
                         const EvaluationRules& rules);

}  // namespace foretoken
