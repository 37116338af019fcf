// What one pipeline stage of a step takes, each part accounted for.
#pragma once

#include <vector>

#include "base/estimate.h"
#include "compose/dispatch.h"
#include "compose/timed_launch.h"
#include "model/step.h"

namespace foretoken {

struct StageEstimate {
  std::vector<TimedOperator> operators;  // in order of first use; those fused into others are left out
  std::vector<TimedLaunch> launches;     // the kernels behind them
  std::vector<Operator> calls;           // what was lowered: Launch::call is an index here
  DispatchTime time;                     // where the value of `seconds` goes
  double padding = 0;                    // of it: kernels' time for tokens that only fill a captured graph
  Estimate kernels;                      // the kernels and collectives alone
  Estimate seconds;
  RankMemory memory;
};

}  // namespace foretoken
