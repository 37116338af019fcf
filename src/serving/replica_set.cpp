#include "serving/replica_set.h"

#include <algorithm>

#include "base/error.h"

namespace foretoken {

std::deque<Replica> make_replicas(const SimulationConfig& config, RunObserver& observer, KvTiers* tiers) {
  std::deque<Replica> replicas;
  for (const ReplicaConfig& replica : config.replicas) {
    replicas.emplace_back(static_cast<int32_t>(replicas.size()), replica, config, observer, tiers);
  }
  return replicas;
}

SimulationTotals totals_of(const std::deque<Replica>& replicas) {
  SimulationTotals sum;
  for (const Replica& replica : replicas) {
    const SimulationTotals& part = replica.totals();
    sum.completed += part.completed;
    sum.rejected += part.rejected;
    sum.preemptions += part.preemptions;
    sum.steps += part.steps;
    sum.decisions += part.decisions;
    sum.end = std::max(sum.end, part.end);
    const ReplicaLoad load = replica.load();
    ensure(load.outstanding == 0 && load.running == 0 && load.waiting == 0, "every request that came in has ended");
    ensure(load.blocks_used == 0, "an engine without requests holds no blocks");
  }
  return sum;
}

}  // namespace foretoken
