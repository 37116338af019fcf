// An iteration of an RLHF loop for people and for programs.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/estimate.h"
#include "base/json.h"
#include "plan/rlhf_memory.h"
#include "training/scale/rlhf_loop.h"

namespace foretoken {

struct RlhfReport {
  std::string model, cluster;
  RlhfPlan plan;
  RlhfIteration iteration;
  Estimate seconds;  // of the iteration: with all kernels at the lower and at the upper end of their intervals
  int64_t training_length = 0;  // of the sequences whose time was computed
  int64_t longest_length = 0;   // of those that must fit in memory
  TrainerMemory trainers;
  std::optional<ServingMemory> engine;  // nothing = the memory of the devices is not known
  int64_t asked_sequences = 0;          // decoded at once, before the KV cache limits them
};

// One sentence where a model does not fit in memory; empty where all do.
std::string rlhf_failure(const RlhfReport& report);
// What limits have changed of what was asked.
std::vector<std::string> rlhf_notes(const RlhfReport& report);

// Begins with the failure, where there is one.
std::string rlhf_text(const RlhfReport& report);
Json rlhf_json(const RlhfReport& report);

}  // namespace foretoken
