// What states in host memory make of a step's time: one arithmetic for estimates, searches and advice.
#pragma once

#include "base/estimate.h"
#include "training/iteration.h"
#include "training/memory/training_formats.h"
#include "training/memory/training_memory.h"
#include "training/schedule/pipeline_work.h"
#include "training/training_plan.h"

namespace foretoken {

struct HostMemoryTime {
  double streamed = 0;  // activations and weights of each micro-batch that the link does not move beside its computing
  Estimate optimizer;   // after all of them
  double spared = 0;    // share of the device's own optimizer, which the host's takes the place of

  // Of a step that takes `seconds` with everything on the device, `device_optimizer` of them for its optimizer: what it
  // takes until the host's optimizer starts, and all of it.
  double seconds_before_optimizer(double seconds, double device_optimizer) const {
    return seconds - spared * device_optimizer + streamed;
  }
  double step_seconds(double seconds, double device_optimizer) const {
    return seconds_before_optimizer(seconds, device_optimizer) + optimizer.value;
  }
};

// `work` has the plan's chunks as they run.
HostMemoryTime host_memory_time(const PlanMemory& memory, const TrainingPlan& plan, const TrainingFormats& formats,
                                const PipelineWork& work, const HostMemoryLink& host);

// Time, interval, parts and speed of the step with it. The interval of what the host does is among the step's.
void add_host_memory_time(IterationEstimate& iteration, const HostMemoryTime& time);

}  // namespace foretoken
