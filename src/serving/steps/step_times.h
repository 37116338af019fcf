// How long one step of an engine takes.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "base/estimate.h"

namespace foretoken {

// `new_tokens` of a prompt go in, on top of `context_tokens` in the cache.
struct PromptChunk {
  int64_t new_tokens = 0;
  int64_t context_tokens = 0;
  bool yields_token = true;  // it is the prompt's last chunk: a token is sampled
};

// As many equal chunks with as many tokens and as much attention work, tokens x (context + tokens / 2).
struct EqualChunks {
  int64_t count = 0;
  double new_tokens = 0, context_tokens = 0;  // of each
};
EqualChunks equal_chunks(std::span<const PromptChunk> chunks);

// What runs in one step. Decodes enter as a count, a sum and a maximum, so that a step costs the same to describe
// whatever its size.
struct StepBatch {
  int64_t decodes = 0;                 // sequences with one new token
  int64_t decode_context_tokens = 0;   // in the cache of all of them together, before the step
  int64_t longest_decode_context = 0;  // of the longest of them
  int64_t drafted_tokens = 0;          // that the decodes verify, of all of them together, beyond their own
  bool samples_drafts = true;          // the head runs on them too; false where they are only read
  // Of all ranks that take the step together, this one included; 0 = each has as many as this one. Experts that they
  // share work on these.
  int64_t tokens_of_all_ranks = 0;
  int64_t adapters = 0;        // different LoRA adapters that tokens go through
  int64_t adapter_tokens = 0;  // new tokens that do
  std::span<const PromptChunk> prompts;
  std::span<const int64_t> images = {};  // patches of each that is encoded in the step

  int64_t new_tokens() const;
  int64_t sampled_tokens() const;  // rows that the head runs on: those of prompts that end, decodes and drafts
};

// The batch of decodes alone `steps` steps later: each context has grown by one token a step.
StepBatch grown(const StepBatch& decodes, int64_t steps);

// What a table says of a step, within `error` of it. InputError names the table (`source`) where that is no time of a
// step: values that go down so far, or up, beyond the last row.
Estimate tabulated_seconds(double seconds, double error, const std::string& source);

// From the composition layer, from measured tables, or from another simulator's tables. Not thread-safe.
class StepTimes {
 public:
  virtual ~StepTimes() = default;
  virtual Estimate step_seconds(const StepBatch& batch) = 0;

  // Seconds of `steps` steps of decodes alone, one after the other, `batch` being the first. By default halves are
  // added until each is straight within 1e-4: exact wherever the time is linear in the context.
  virtual Estimate decode_run_seconds(const StepBatch& batch, int64_t steps);

  // Seconds of each pipeline stage of a step, from the first. By default all take the same.
  virtual void stage_seconds(const StepBatch& batch, std::span<Estimate> stages);
};

}  // namespace foretoken
