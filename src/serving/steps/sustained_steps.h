// Steps of an engine that never pauses. Kernels are measured on a cool board; a service holds it at its power limit,
// where steps with prompts, which multiply most, take longer.
#pragma once

#include <memory>

#include "serving/steps/composed_steps.h"
#include "serving/steps/step_times.h"

namespace foretoken {

// `cool` times the slowdown of a step of the same tokens, decodes and mean context that our own kernels make up,
// repeated without pause (compose/sustained_step.h). The slowdown is interpolated on a grid (size_grid.h) with two
// steps to each doubling; its interval reaches from none to twice as much.
// Just `cool` where nothing is known of the device's power.
std::unique_ptr<StepTimes> sustained_steps(std::unique_ptr<StepTimes> cool, ComposedStepsConfig config);

}  // namespace foretoken
