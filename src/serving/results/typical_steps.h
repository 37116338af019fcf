// The typical step of each kind that a run had, by operator.
#pragma once

#include <string>
#include <vector>

#include "compose/step_estimate.h"
#include "serving/results/step_mix.h"
#include "serving/steps/composed_steps.h"

namespace foretoken {

struct TypicalStep {
  std::string device;
  StepShare share;
  StepEstimate step;
};

// Of replicas whose steps are made so, without drafts and adapters. `logits`: what the head runs on.
std::vector<TypicalStep> typical_steps(const ComposedStepsConfig& composed, const StepMix& mix,
                                       Logits logits = Logits::last);

}  // namespace foretoken
