// How long one step of an engine takes.
#pragma once

#include <cstdint>
#include <span>

#include "base/estimate.h"

namespace foretoken {

// One sequence's part in a step: `new_tokens` go in, on top of `context_tokens` in the cache.
struct StepSequence {
  int64_t new_tokens = 1;
  int64_t context_tokens = 0;
  bool yields_token = true;  // its last token is sampled
};

struct StepBatch {
  std::span<const StepSequence> sequences;  // in the engine's order
};

// From the composition layer, from measured tables, or from another simulator's tables. Not thread-safe.
class StepTimes {
 public:
  virtual ~StepTimes() = default;
  virtual Estimate step_seconds(const StepBatch& batch) = 0;
};

}  // namespace foretoken
