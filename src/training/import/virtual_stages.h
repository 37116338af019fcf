// Megatron-LM's --num-layers-per-virtual-pipeline-stage: how many chunks each pipeline rank then has.
#pragma once

#include <cstdint>

#include "base/error.h"
#include "training/training_plan.h"

namespace foretoken {

// Of a model of `layers`, so many in each chunk; the embedding and the loss count where the plan says so
// (megatron/training/arguments.py). InputError, at `where`, for a remainder and for outer stages of their own size.
int64_t virtual_stages_of(const TrainingPlan& plan, int64_t layers, int64_t layers_of_chunk, InputProblem where);

}  // namespace foretoken
