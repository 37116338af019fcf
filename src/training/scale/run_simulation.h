// The run that goodput() speaks of, failure by failure.
#pragma once

#include <cstdint>
#include <vector>

#include "training/scale/goodput.h"

namespace foretoken {

struct SimulatedRun {
  double wall_seconds = 0;
  double effective = 0;
  int64_t failures = 0, checkpoints = 0;
  std::vector<LostTime> lost;  // causes as goodput() lists them
};

// Until `training_seconds` of work are in usable checkpoints. Costs a few draws for each failure.
SimulatedRun simulate_run(const RunConditions& conditions, double interval_seconds, double training_seconds,
                          uint64_t seed);

}  // namespace foretoken
