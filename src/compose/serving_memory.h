// The memory of one GPU as a serving engine divides it: how much is left for the KV cache, and what that holds.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/estimate.h"
#include "compose/cache_layout.h"
#include "compose/profile_run.h"
#include "compose/serving_engine.h"
#include "hardware/device.h"
#include "model/step.h"

namespace foretoken {

// A change that lets an engine start that otherwise would not.
struct Remedy {
  std::string change;         // "{kv_cache_dtype} fp8"
  int64_t sequences = 0;      // of max_model_len that then fit
  int64_t longest_model = 0;  // max_model_len after the change
};

// All sizes in bytes on one rank of the tightest pipeline stage.
struct ServingMemory {
  EngineFlags flags;  // every choice made
  int64_t stage = 0;
  Estimate total;    // what programs can allocate
  Estimate budget;   // what the engine lets itself use, in the sense of its memory fraction
  Estimate weights;  // with rotary tables, experts as the engine lays them out
  ProfileRun profile;
  Estimate runtime;  // kernels and collectives
  Estimate context;
  Estimate graphs;
  int64_t graph_count = 0;
  Estimate kv_pool;  // below zero when the rest alone is too much
  CacheLayout layout;
  Estimate blocks;              // whole numbers
  Estimate tokens;              // in sequences of max_model_len where layers keep different parts
  Estimate sequences;           // of max_model_len, whole numbers
  bool starts = false;          // one sequence of max_model_len fits
  int64_t asked_model_len = 0;  // max_model_len before the engine shortened it to what its cache holds; 0 = it did not
  Bytes short_by;               // what is missing for that; 0 when it fits
  Estimate unused;              // left over once everything is in place; below zero: out of memory while starting
  std::vector<Remedy> remedies;
  std::string model, device;  // their names
  std::string platform;       // of the device (hardware/software.h); empty = none that is known
  ParallelPlan plan;

  // How many sequences of this length fit, when a step brings in `step_tokens` of each at once.
  int64_t sequences_of(int64_t tokens_each, int64_t step_tokens) const;

  // It begins to start, and ends for want of memory before it takes requests.
  bool runs_out_while_starting() const { return unused.value < 0; }

  // Something beside the model leaves room for requests of `longest` tokens only. False: the engine would not start.
  bool shorten_context(int64_t longest);
};

// What would let an engine start that does not: each change is a report of its own, so that searches leave it out.
enum class RemediesSought : uint8_t { yes, no };

ServingMemory serving_memory(const Model& model, const Device& device, const ParallelPlan& plan,
                             const EngineFlags& flags, RemediesSought remedies = RemediesSought::yes);

// Of an engine that does not start: what does not fit, and how much is missing.
std::string memory_shortage(const ServingMemory& memory);

}  // namespace foretoken
