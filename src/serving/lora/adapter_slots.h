// How many different adapters may run at once (vLLM, max_loras).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "serving/scheduling/sequence.h"

namespace foretoken {

// vLLM counts the adapters of sequences in the step (v1/core/sched/scheduler.py, scheduled_loras); here those of all
// running ones, so that every step of them has slots enough.
class AdapterSlots {
 public:
  // `most` = 0: no limit, and nothing is counted.
  AdapterSlots(int64_t most, std::span<Sequence* const> running);

  bool has_room(int32_t adapter) const;  // -1, no adapter, always has
  void take(int32_t adapter);

 private:
  size_t most_;
  std::vector<int32_t> taken_;  // different ones
};

}  // namespace foretoken
