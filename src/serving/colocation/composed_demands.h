// What steps of our own kernels ask of a device.
#pragma once

#include <memory>

#include "serving/colocation/colocation.h"
#include "serving/steps/composed_steps.h"

namespace foretoken {

// A kernel holds what bounds it, the multiply units or the memory, for as long as it runs, and of the other what its
// roofline needs; between kernels, and in collectives, the device is free. Of equal steps on a grid (equal_step.h,
// size_grid.h) with two steps to each doubling.
std::unique_ptr<StepDemands> composed_demands(ComposedStepsConfig config);

// Of one step.
struct StepEstimate;
StepDemand step_demand(const StepEstimate& step);

}  // namespace foretoken
