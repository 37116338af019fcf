#include "serving/simulation/replica_set.h"

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
    sum.add(replica.totals());
    replica.check_ended();
  }
  return sum;
}

}  // namespace foretoken
