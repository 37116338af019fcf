// A step repeated without pause: its mix of kernels sets the board's power, and the clock where that is too much.
#pragma once

#include "base/estimate.h"
#include "compose/step_estimate.h"
#include "kernel/power.h"

namespace foretoken {

struct SustainedStep {
  SustainedPower power;  // of the stage that draws most
  Estimate seconds;      // of the whole step, power-limited
  double joules = 0;     // of all devices of one replica
  Estimate above_idle;   // W of all of them together beyond what they draw idle, mean over the step
};

// `step` as estimate_step() gave it. Gaps and stalls count as idle time.
SustainedStep sustained_step(const StepEstimate& step, const PowerModel& power, const Device& device);

}  // namespace foretoken
