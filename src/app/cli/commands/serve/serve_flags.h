// The flags of `serve`, and the engines and the run that they ask for.
#pragma once

#include <string>
#include <vector>

#include "app/cli/flags/colocation_flags.h"
#include "app/cli/flags/energy_flags.h"
#include "app/cli/flags/fleet_flags.h"
#include "app/cli/flags/kv_tier_flags.h"
#include "app/cli/flags/load_flags.h"
#include "app/cli/flags/picture_flags.h"
#include "app/cli/flags/pool_flags.h"
#include "app/cli/flags/replica_flags.h"
#include "app/cli/flags/result_flags.h"
#include "app/cli/flags/retrieval_flags.h"
#include "app/cli/flags/sampling_flags.h"
#include "library/library.h"
#include "serving/serving_run.h"
#include "serving/stages/stage_list.h"

namespace foretoken {

struct ServeFlags {
  const Options* options = nullptr;
  ReplicaFlags replica;
  PoolFlags pools;
  KvTierFlags tiers;
  EnergyFlags energy;
  FleetFlags fleet;
  ColocationFlags colocation;
  std::vector<std::string> replica_kinds;
  LoadFlags load;
  AdapterLoadFlags adapter_load;
  SamplingFlags sampling;
  RetrievalFlags retrieval;
  PictureFlags pictures;
  GoalFlags goals;
  ResultFlags results;
  std::string html;
  std::string explained;  // which request; empty = none
  int64_t more_seeds = 0;
  bool intervals = true, breakdown = false;

  void declare(Options& all);
  // InputError for flags that do nothing beside the others.
  void check_use() const;
  // What the flags ask for, by the flags that do.
  RunParts parts(bool metered) const;
  bool explains() const { return !explained.empty(); }
  bool has_step_bounds() const;       // whether step times are also run at the ends of their intervals
  std::string interval_note() const;  // why they are not

  // The engines as this load uses them. `replicas`: those of the flags, perhaps changed.
  std::vector<ReplicaGroup> groups_for_load(const Library& library, const ReplicaFlags& replicas,
                                            const std::vector<ColocatedEngineFlags>& colocated) const;
  // Whatever the load.
  std::vector<ReplicaGroup> groups(const Library& library, const ReplicaFlags& replicas,
                                   const std::vector<ColocatedEngineFlags>& colocated = {}) const;
  // The run itself, watched by nobody yet. It uses groups and stages.
  ServingRunRequest request_for(const LoadFlags& requests, std::vector<ReplicaGroup>& groups, StageList& stages,
                                const Library& library) const;

 private:
  bool has_few_requests() const;
};

}  // namespace foretoken
