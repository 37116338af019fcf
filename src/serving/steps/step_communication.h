// The collectives of a step: what measured operators of one rank do not have in them.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "base/estimate.h"
#include "network/ring_link.h"
#include "serving/steps/composed_steps.h"
#include "serving/steps/step_times.h"

namespace foretoken {

// The sums over the tensor ranks after attention and feed-forward of every layer and after the embedding, the gathered
// logits, what goes to experts of other ranks and back, and what goes from one pipeline stage to the next, as the model
// has them and the stack runs them. Nothing is overlapped.
class StepCommunication {
 public:
  // Over `link` where it is given, else as the stack runs them on the device.
  explicit StepCommunication(ComposedStepsConfig config, std::optional<RingLink> link = std::nullopt)
      : config_(std::move(config)), link_(link) {}

  Estimate seconds(const StepBatch& batch);

 private:
  // Of a step that yields one token of each sequence.
  struct Parts {
    Estimate layers, exchange, logits;
  };
  const Parts& parts(int64_t tokens);

  ComposedStepsConfig config_;
  std::optional<RingLink> link_;
  std::map<int64_t, Parts> parts_;  // by tokens
};

// Composed steps whose collectives run over another link: those of the device are taken out, rings over `link` put in.
std::unique_ptr<StepTimes> steps_over_link(std::unique_ptr<StepTimes> composed, const ComposedStepsConfig& config,
                                           const RingLink& link);

}  // namespace foretoken
