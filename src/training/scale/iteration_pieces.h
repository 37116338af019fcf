// What varies in a predicted iteration.
#pragma once

#include "training/iteration.h"
#include "training/scale/step_variation.h"

namespace foretoken {

// The slowest stage stands for all; the median is the iteration's time, which was fitted to medians.
StepPieces step_pieces(const IterationEstimate& iteration, const TrainingPlan& plan, int64_t layers);

}  // namespace foretoken
