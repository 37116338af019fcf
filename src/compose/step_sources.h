// What the kernel times of a step rest on.
#pragma once

#include "compose/step_estimate.h"

namespace foretoken {

// Shares of the time of kernels and collectives.
struct StepSources {
  double measured = 0;       // on this device
  double other_devices = 0;  // predicted from measurements of others
  double mapped = 0;         // onto a designed chip
  double sheets = 0;         // rooflines and wire times
};

StepSources sources_of(const StepEstimate& step);

}  // namespace foretoken
