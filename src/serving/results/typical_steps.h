// The steps that a run had, by operator: the typical one of each kind, and all of them by size.
#pragma once

#include <array>
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

// Of replicas whose steps are made so, without drafts and adapters. `logits`: what the head runs on. Of ranks in lock
// step, whose steps are counted together, each estimate is that of one rank.
std::vector<TypicalStep> typical_steps(const ComposedStepsConfig& composed, const StepMix& mix,
                                       Logits logits = Logits::last, int64_t lock_step_ranks = 1);

// What all steps of a run spent on one operator.
struct OperatorTime {
  std::string name;
  std::array<double, 3> seconds = {};  // in steps with prompts alone, decodes alone, or both: as StepMix::shares()
  std::vector<double> slice_seconds;   // over the run, in slices of OperatorAccount::slice_seconds
  double decode_wait_seconds = 0;      // that decoding sequences waited for it: of each step, times its decodes

  double sum() const { return seconds[0] + seconds[1] + seconds[2]; }
};

// Where the time of a run went.
struct OperatorAccount {
  std::vector<std::string> devices;  // that it ran on
  std::array<StepShare, 3> shares;   // by kind of step
  double slice_seconds = 0;
  std::vector<OperatorTime> operators;  // slowest first; what is between kernels comes as one of its own

  double busy_seconds() const;
};
inline constexpr const char* between_kernels = "host and gaps";

// Each step has the operators of the mean step of its class (StepMix::classes); their sum is the time that the steps
// took. Of ranks in lock step: of one rank, as above.
OperatorAccount operator_account(const ComposedStepsConfig& composed, const StepMix& mix, Logits logits = Logits::last,
                                 int64_t lock_step_ranks = 1);
// Of pools that ran side by side.
OperatorAccount together(const std::vector<OperatorAccount>& accounts);

}  // namespace foretoken
