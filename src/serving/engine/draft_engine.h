// A drafter beside an engine: its network, the time of its passes, and the memory it takes from the KV cache.
#pragma once

#include <memory>
#include <optional>

#include "compose/serving_memory.h"
#include "serving/scheduling/scheduler.h"
#include "serving/speculation/speculative_config.h"
#include "serving/steps/composed_steps.h"

namespace foretoken {

class DraftEngine {
 public:
  // `target` is how the target's steps are composed; the drafter runs on the same devices and stack, without the host
  // time of a step, which the target's has. `draft`: the model that the config names.
  DraftEngine(const SpeculativeConfig& config, const ComposedStepsConfig& target, const std::optional<Model>& draft);

  const Speculation& speculation() const { return speculation_; }
  // The target's steps and the drafter's passes after each. Both must outlive the result.
  std::unique_ptr<StepTimes> steps(StepTimes& target);

  // The options of an engine without a drafter: its drafts, and the blocks that are left when the drafter's weights and
  // cache have their place. A sequence of max_model_len that no longer fits is shortened, or is an InputError where the
  // engine would not start.
  SchedulerOptions beside(const SchedulerOptions& options, ServingMemory& memory) const;

  // Its weights and cache on one rank, beside so many sequences of that length.
  Bytes memory(int64_t sequences, int64_t tokens_each) const;

 private:
  double weight_bytes() const;           // on one rank
  double cache_bytes_per_token() const;  // on one rank

  const DraftMethod* method_;
  Speculation speculation_;
  DType kv_dtype_;
  ParallelPlan plan_;
  std::optional<Model> network_;
  std::unique_ptr<StepTimes> passes_;
};

// The largest batch up to `most` whose decode step fits in the memory of each device together with the drafter, by what
// `estimate_step` counts; `most` where the memory is not known, 0 where not even one sequence fits.
int64_t largest_batch_in_memory(const ComposedStepsConfig& target, const DraftEngine& drafter, int64_t context,
                                int64_t most);

}  // namespace foretoken
