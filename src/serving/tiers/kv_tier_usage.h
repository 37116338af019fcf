// What the tiers below the GPUs did in a run.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/simulated_time.h"

namespace foretoken {

// One tier, over all its stores and links.
struct KvTierUse {
  std::string kind;
  int64_t hit_tokens = 0;                     // of prompts, found here rather than on the GPU when first scheduled
  int64_t resumed_tokens = 0;                 // the same of sequences that go on after a preemption
  int64_t read_tokens = 0;                    // moved out of it, to a GPU or ahead of time to the first tier
  int64_t written_tokens = 0;                 // moved into it
  int64_t most_tokens = 0;                    // held at once, by all stores together
  Picoseconds read_busy = 0, write_busy = 0;  // of all links together
};

struct KvTierUsage {
  std::vector<KvTierUse> tiers;  // the nearest first; empty = there were none
  double kv_bytes_per_token = 0;
  int64_t swapped_sequences = 0;    // preempted ones that were kept
  int64_t waiting_requests = 0;     // that waited apart for what they loaded
  Picoseconds requests_waited = 0;  // so long together
  int64_t waiting_steps = 0;        // steps that took longer for what they loaded
  Picoseconds waited = 0;           // by so much together

  int64_t hit_tokens() const {
    int64_t sum = 0;
    for (const KvTierUse& tier : tiers) sum += tier.hit_tokens;
    return sum;
  }
};

}  // namespace foretoken
