// A serving run, asked as a whole: engines, the requests they get, and how those are spread and judged.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "serving/engine/engine_builder.h"
#include "serving/engine/engine_spec.h"
#include "serving/load/load_spec.h"
#include "serving/results/priority_metrics.h"
#include "serving/serving_run.h"

namespace foretoken {

struct DeploymentSpec {
  std::vector<EngineSpec> other_engines = {};  // that serve the same model beside the first
  std::string router = {};                     // empty = the engine's own
  uint64_t seed = 0;
  LatencyGoals goals = {};
  std::vector<double> percentiles = {99};
  bool step_bounds = true;  // also run at both ends of the step times' intervals
  int64_t more_seeds = 0;   // also run with so many other seeds
  Tier tier = Tier::best;
};

struct ServingPrediction {
  LoadSpec load;
  std::vector<ReplicaGroup> groups;
  std::vector<double> percentiles;
  ServingRun run;
  std::vector<PriorityLatencies> priorities;  // of requests of each priority
};

// EngineDoesNotFit where an engine would not start; InputError names what is unknown or does not go together.
ServingPrediction simulate_serving(const Library& library, const EngineSpec& engine, const LoadSpec& load,
                                   const DeploymentSpec& deployment = {});

}  // namespace foretoken
