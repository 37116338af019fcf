// Watts from energies and the clock.
#pragma once

#include "accelerator/architecture.h"
#include "accelerator/evaluator.h"

namespace foretoken {

// Of all instances, whether they work or not.
double leakage_watts(const Architecture& architecture);

// Mean over the cycles of a run.
double average_watts(const Evaluation& evaluation, const Architecture& architecture);

}  // namespace foretoken
