// Operators of a step + a device -> the step's time and memory, each part accounted for.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/estimate.h"
#include "base/units.h"
#include "kernel/kernel.h"
#include "model/model.h"
#include "model/step.h"

namespace foretoken {

// One operator with its time: a kernel's, or a collective's.
struct TimedOperator {
  Operator call;
  std::optional<KernelEstimate> kernel;  // nothing for a collective
  Estimate seconds;                      // of all `call.count` calls
  Work work;                             // of all calls; zero for a collective
};

struct StageEstimate {
  std::vector<TimedOperator> operators;  // in order of first use
  Estimate seconds;
  RankMemory memory;
};

struct StepEstimate {
  StepRequest request;
  ParallelPlan plan;
  std::vector<StageEstimate> stages;  // one per pipeline stage
  Estimate seconds;                   // one batch through all stages, one after the other
  Flops model_flops;   // of the whole model for this request; a training step counts its backward pass too
  double devices = 1;  // over which the step is spread, data parallelism included
  double model_flops_utilization = 0;  // model FLOPs over time and dense peak of all devices of one replica
  double tokens = 0;                   // that the step takes in, over all data-parallel replicas
  Bytes device_memory;                 // 0 = not known
  std::optional<bool> fits_in_memory;  // the fullest stage; nothing where device memory is not known
};

// The sum of kernels, one after the other on each device: no launch gaps, no overlap of communication yet.
// Errors of kernels on one device mostly go the same way, so they add linearly: the wider of the honest choices.
StepEstimate estimate_step(const Model& model, const StepRequest& request, const ParallelPlan& plan,
                           const KernelPredictor& predictor);

}  // namespace foretoken
