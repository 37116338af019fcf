// Which knobs mattered, from the designs that a search has evaluated.
#pragma once

#include <span>
#include <vector>

#include "plan/accelerator/design_search.h"

namespace foretoken {

struct KnobEffect {
  size_t knob = 0;              // place among the space's knobs
  double ratio = 1;             // of the objective between its worst and its best value, others alike
  int best = 0;                 // the value with the least objective
  std::vector<double> factors;  // by value: of the objective, against the mean; nothing seen: 1
  std::vector<size_t> seen;     // by value: designs
};

// Main effects: the logarithm of the objective as a sum of one term for each knob's value, by least squares with a pull
// to zero of one design's weight. Searches look where it is good, so plain means would mix the knobs up. The knob that
// matters most first.
std::vector<KnobEffect> knob_effects(const DesignObjective& objective, std::span<const EvaluatedDesign> designs,
                                     std::span<const int> choices);

}  // namespace foretoken
