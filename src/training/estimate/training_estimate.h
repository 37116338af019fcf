// A training question with all its parts -> step time, memory, how steps vary, and what a long run takes.
#pragma once

#include <optional>

#include "hardware/cluster.h"
#include "training/flop_conventions.h"
#include "training/iteration.h"
#include "training/memory/memory_advice.h"
#include "training/memory/training_memory.h"
#include "training/scale/checkpoints.h"
#include "training/scale/failures.h"
#include "training/scale/goodput.h"
#include "training/scale/step_variation.h"
#include "training/scale/training_run.h"
#include "training/training_machine.h"

namespace foretoken {

// What a long run must know besides its steps.
struct LongRun {
  double tokens = 0;
  FailureModel failures;
  RecoveryPlan recovery;
  CheckpointPlan checkpoints;  // `bytes` are those of the model
  std::optional<double> usd_per_device_hour, watts_per_device;
};

struct TrainingQuestion {
  TrainingJob job;
  TrainingPlan plan;
  int64_t devices = 0;  // that there are for it; the plan may leave some idle
  TrainingStack stack;
  Cluster cluster;  // with as many nodes as the plan needs, or more
  TrainingFormats formats;
  MemoryOverheads overheads;
  const FlopConvention* convention = nullptr;
  VariationModel variation;
  std::optional<LongRun> run;
};

struct LongRunEstimate {
  JobReliability reliability;
  Goodput goodput;
  TrainingRun run;
};

struct TrainingEstimate {
  IterationEstimate iteration;
  PlanMemory memory;
  std::optional<Bytes> capacity;                // of one device
  bool fits = true;                             // device and host; also where a capacity is not known
  MemoryVerdict verdict = MemoryVerdict::fits;  // of the device's memory
  HostMemoryLoad host;
  std::vector<MemoryAdvice> advice;  // where it does not: the cheapest changes first
  TokenFlops flops;
  FlopUse use;
  StepVariation variation;
  std::optional<LongRunEstimate> run;
};

// Of the fullest device, what the framework's allocator hands out. The plan must be valid.
Bytes allocated_bytes(const TrainingQuestion& question);

// InputError that lists everything wrong with the plan.
TrainingEstimate estimate_training(const TrainingQuestion& question, const MachineModels& machine);

}  // namespace foretoken
