// Step times of an engine that drafts: after the target's step the drafter runs.
#pragma once

#include <memory>

#include "serving/speculation/draft_method.h"
#include "serving/speculation/speculation.h"
#include "serving/steps/step_times.h"

namespace foretoken {

struct Drafter {
  const DraftMethod* method = nullptr;
  StepTimes* network = nullptr;  // of one pass; not owned; null for a method without a network
  Speculation speculation;
};

// Passes of the drafter after a step (vLLM, v1/spec_decode/eagle.py):
//   a network that follows the target  one pass over the tokens of the step, drafts that may be rejected included, then
//                                      one for each draft but the first, over one token of each sequence that drafts
//   a block (dspark, dflash)           one pass over the tokens of the block of each sequence that drafts
//   heads (medusa)                     one for each draft, over one token of each sequence
//   n-gram                             host time, by the tokens searched
// In a tree each pass has the mean number of tokens of a level. `target` is not owned.
std::unique_ptr<StepTimes> speculative_steps(StepTimes& target, const Drafter& drafter);

// Seconds on the host to look up n-grams: a search over all tokens of each sequence. An assumption, not measured in an
// engine: 50 us of Python in a step and 3 ns a token (vLLM's compiled Knuth-Morris-Pratt), within a factor of four.
Estimate ngram_seconds(int64_t sequences, int64_t tokens);

}  // namespace foretoken
