// A software stack with the costs that calibration found on one deployment, and how well steps are known with them.
#pragma once

#include "base/estimate.h"
#include "compose/stack.h"
#include "library/deployment.h"
#include "model/step.h"

namespace foretoken {

// Inference only: steps that train keep their costs.
Stack calibrated(Stack stack, const ConstantPosterior& posterior);

// Seconds of a step by what constants multiply. Kernels hold attention and experts.
struct StepShares {
  StepPhase phase = StepPhase::decode;
  double host = 0, kernels = 0, attention = 0, experts = 0, collectives = 0;
};

// Of a step of so many seconds in which the device waits for the host for `stall`: what the host's constant multiplies
// and the step takes longer for.
double visible_host(const Stack& stack, double seconds, double stall);

// The interval of a step whose constants are so well known: errors of constants go together as their covariance says,
// and what no constant explains comes on top.
Estimate with_posterior(double seconds, Confidence kind, const ConstantPosterior& posterior, const StepShares& shares);

}  // namespace foretoken
