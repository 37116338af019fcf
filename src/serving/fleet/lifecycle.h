// Which replicas there are, and what they cost.
#pragma once

#include <cstddef>
#include <vector>

#include "serving/fleet/fleet.h"

namespace foretoken {

enum class ReplicaState : uint8_t {
  off,
  starting,  // takes devices, but no requests yet
  serving,
  draining  // finishes what it has, and gets nothing new
};

class Lifecycle {
 public:
  explicit Lifecycle(const std::vector<FleetMember>& members);

  ReplicaState state(size_t replica) const { return replicas_[replica].state; }
  Picoseconds since(size_t replica) const { return replicas_[replica].since; }  // it is in that state
  // Never back in time.
  void change(size_t replica, ReplicaState to, Picoseconds now);

  // Up to now.
  double gpu_seconds(Picoseconds now) const;
  const std::vector<FleetSize>& sizes() const { return sizes_; }

 private:
  struct One {
    ReplicaState state = ReplicaState::off;
    Picoseconds since = 0;
    int64_t devices = 1;
    Picoseconds held_since = 0;  // unless it is off
  };
  std::vector<One> replicas_;
  double gpu_seconds_ = 0;  // of those that went off
  std::vector<FleetSize> sizes_;
};

}  // namespace foretoken
