// KV caches on their way from one replica to another, sharing the links at both ends.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "network/flow/flow_simulator.h"
#include "network/topology/topology.h"
#include "serving/simulation/disaggregation.h"

namespace foretoken {

// Replicas hang off one switch that never blocks; transfers of one port share it max-min fair (flow_simulator.h).
class KvTransfers {
 public:
  explicit KvTransfers(std::span<const KvPort> ports);

  // Numbers count up from 0. `at` is not before the last `advance`.
  JobNumber start(size_t from, size_t to, double bytes, Picoseconds at);
  // When transfers next begin to move, share links anew or end; end_of_time without any.
  Picoseconds next_event() { return flows_.jobs_left() > 0 ? flows_.next_event() : end_of_time; }
  // Goes on to that time; the transfers that end then.
  std::span<const JobNumber> advance(Picoseconds now);

 private:
  std::vector<KvPort> ports_;
  Topology topology_;
  FlowSimulator flows_;
};

}  // namespace foretoken
