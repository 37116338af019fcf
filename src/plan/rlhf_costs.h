// What the stages of an RLHF loop (training/scale/rlhf_loop.h) cost, from a training step and from steps of an engine.
#pragma once

#include <cstdint>

#include "serving/simulation/simulation.h"
#include "serving/steps/step_times.h"
#include "training/iteration.h"
#include "training/scale/rlhf_loop.h"

namespace foretoken {

// Training: the whole step. Forward: the forward passes of all stages, without their bubble. At a bound both are as
// much shorter or longer as the step.
ModelCost model_cost(const IterationEstimate& iteration, const TrainingPlan& plan, int64_t sequence_length,
                     StepBound bound = StepBound::value);

struct RolloutRequest {
  int64_t devices = 1;  // of one engine
  int64_t most_sequences = 256;
  double prompt_tokens = 512;
  double context_tokens = 1000;  // of a sequence that decodes, in the mean
};
// Decode steps of one and of the most sequences; prompts one at a time.
RolloutEngine rollout_engine(StepTimes& steps, const RolloutRequest& request, StepBound bound = StepBound::value);

}  // namespace foretoken
