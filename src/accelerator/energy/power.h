// Watts from energies and the clock.
#pragma once

#include "accelerator/architecture.h"
#include "accelerator/evaluator.h"

namespace foretoken {

// Mean over the cycles of a run.
double average_watts(const Evaluation& evaluation, const Architecture& architecture);

}  // namespace foretoken
