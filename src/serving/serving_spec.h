// A serving run, asked as a whole: engines, the requests they get, and how those are spread and judged.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "serving/engine/engine_builder.h"
#include "serving/engine/engine_spec.h"
#include "serving/engine/kv_pools.h"
#include "serving/load/load_spec.h"
#include "serving/results/priority_metrics.h"
#include "serving/serving_run.h"

namespace foretoken {

// Engines that compute prompts; those of the run then decode.
struct PrefillPool {
  EngineSpec engine;
  KvTransfer transfer = {};
};

struct DeploymentSpec {
  std::vector<EngineSpec> other_engines = {};  // that serve the same model beside the first
  std::optional<PrefillPool> prefill = {};     // nothing = engines compute whole requests
  std::string router = {};                     // empty = the engine's own
  // Parts of the run, for its replicas in the order of the engines. They cannot all be combined: run_parts.h.
  std::optional<KvTierSettings> kv_tiers = {};  // memories below the KV caches
  std::optional<FleetConfig> fleet = {};        // replicas come and go: one for each member
  std::optional<Colocation> colocation = {};    // the engines share one device; requests name their model
  std::vector<StageConfig> stages = {};         // that requests pass first
  SampleSettings samples = {};                  // several outputs of each request
  std::vector<RunObserver*> observers = {};     // told what happens in the run itself; not owned
  uint64_t seed = 0;
  LatencyGoals goals = {};
  std::vector<double> percentiles = {99};
  StepBound bound = StepBound::value;  // of the step times' intervals, for all steps of the run itself
  bool step_bounds = true;             // also run at both ends
  int64_t more_seeds = 0;              // also run with so many other seeds
  Tier tier = Tier::best;
};

struct ServingPrediction {
  LoadSpec load;
  std::vector<ReplicaGroup> groups;
  std::vector<double> percentiles;
  ServingRun run;
  std::vector<PriorityLatencies> priorities;  // of requests of each priority
};

// EngineDoesNotFit where an engine would not start; InputError names what is unknown or cannot be combined.
ServingPrediction simulate_serving(const Library& library, const EngineSpec& engine, const LoadSpec& load,
                                   const DeploymentSpec& deployment = {});
// The same with engines of this builder, which keeps step times from one call to the next: the deployment's tier is the
// builder's business.
ServingPrediction simulate_serving(EngineBuilder& builder, const EngineSpec& engine, const LoadSpec& load,
                                   const DeploymentSpec& deployment);

}  // namespace foretoken
