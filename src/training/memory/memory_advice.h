// A plan that needs more memory than there is: the changes that make it fit, the cheapest first.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/units.h"
#include "model/model.h"
#include "training/memory/training_memory.h"
#include "training/training_plan.h"

namespace foretoken {

struct MemoryAdvice {
  // "turn on sequence parallelism ({sequence_parallel}): 71.2 GB of 80 GB, 1.3% more time"
  std::string sentence;
  TrainingPlan plan;        // after the change, on as many devices
  TrainingFormats formats;  // after the change: offloading
  Bytes need;               // of the fullest stage
  Seconds step;
};

// Time of one optimizer step of a plan that needs `memory`, with what lies in host memory as the formats say.
using AdvisedStep =
    std::function<Seconds(const TrainingPlan& plan, const TrainingFormats& formats, const PlanMemory& memory)>;

// Within the share of the capacity that `overheads` calls usable. Single changes where one is enough, else pairs, else
// three together; empty where the plan fits or nothing helps. Tried: sequence parallelism, sharding, twice or four
// times the tensor, pipeline or context ranks in place of data ranks, smaller micro-batches, the optimizer in host
// memory, recomputation of the attention core, of cheap modules, of as few layers as will do, or of all. The plan must
// be valid.
std::vector<MemoryAdvice> memory_advice(const Model& model, int64_t sequence_length, const TrainingPlan& plan,
                                        const TrainingFormats& formats, const MemoryOverheads& overheads,
                                        Bytes capacity, const AdvisedStep& step);

}  // namespace foretoken
