// The collectives of a step: what measured operators of one rank do not have in them.
#pragma once

#include <cstdint>
#include <map>
#include <utility>

#include "base/estimate.h"
#include "serving/steps/composed_steps.h"
#include "serving/steps/step_times.h"

namespace foretoken {

// The sums over the tensor ranks after attention and feed-forward of every layer and after the embedding, the gathered
// logits, what goes to experts of other ranks and back, and what goes from one pipeline stage to the next, as the model
// has them and the stack runs them. Nothing is overlapped.
class StepCommunication {
 public:
  explicit StepCommunication(ComposedStepsConfig config) : config_(std::move(config)) {}

  Estimate seconds(const StepBatch& batch);

 private:
  // Of a step that yields one token of each sequence.
  struct Parts {
    Estimate layers, exchange, logits;
  };
  const Parts& parts(int64_t tokens);

  ComposedStepsConfig config_;
  std::map<int64_t, Parts> parts_;  // by tokens
};

}  // namespace foretoken
