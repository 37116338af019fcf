// Steps of an engine that never pauses. Kernels are measured on a cool board; a service holds it at its power limit,
// where steps with prompts, which multiply most, take longer. The same where an operator caps power or clock.
#pragma once

#include <memory>

#include "serving/steps/step_times.h"
#include "serving/steps/sustained_grid.h"

namespace foretoken {

// `cool` times the slowdown of a step of the same tokens, decodes and mean context. The grid is shared with what meters
// the same replica's energy.
std::unique_ptr<StepTimes> sustained_steps(std::unique_ptr<StepTimes> cool, std::shared_ptr<SustainedGrid> grid);

}  // namespace foretoken
