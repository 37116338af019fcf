// Operators -> the launches of a stack with their times. Every composition of kernels begins here: serving steps,
// graphs and the pieces of a training step.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/estimate.h"
#include "compose/lowering.h"
#include "compose/stack.h"
#include "kernel/kernel.h"
#include "model/step.h"
#include "network/rank_network.h"

namespace foretoken {

// The launches of one shape with their time: a kernel's, or a collective's.
struct TimedLaunch {
  Launch launch;
  std::optional<KernelEstimate> kernel;  // nothing for a collective
  Estimate seconds;                      // of all calls
  Work work;                             // of all calls; zero for a collective
};

// One operator with the time of its kernels.
struct TimedOperator {
  Operator call;
  std::optional<KernelEstimate> kernel;  // the slowest of its kernels; nothing for a collective
  Estimate seconds;                      // of all `call.count` calls
  Work work;                             // of all calls; zero for a collective
  int64_t launches = 0;                  // kernels of all calls
};

// One call of a collective: the caller knows where its ranks are.
using CollectiveTimer = std::function<Estimate(const StepCollective& call)>;

// A launch that is a collective, as the network sees it. `experts`: those whose tokens travel in the step.
StepCollective collective_of(const Launch& launch, const MoeShape* experts, int64_t stage);

struct LaunchTimer {
  const KernelPredictor& kernels;
  const Stack& stack;
  CollectiveTimer collectives;
  int64_t stage = 0;  // of the pipeline

  // `operators` in the order in which they run; those of one part alone where it is given.
  std::vector<TimedLaunch> time(const std::vector<Operator>& operators, StepPhase phase, std::string_view model_family,
                                std::optional<StepPart> part = {}) const;
};

// Kernels and collectives one after the other. Errors go together as the device's calibration says.
Estimate sum_of_launches(std::span<const TimedLaunch> launches, const ErrorCorrelations& correlations);

Work scaled(Work work, double count);

// Adds up the launches of each operator. It multiplies in the format of the launch with the most FLOPs.
std::vector<TimedOperator> by_operator(const std::vector<Operator>& calls, std::span<const TimedLaunch> launches);

}  // namespace foretoken
