// The replicas of a run as one component.
#pragma once

#include <cstddef>
#include <deque>
#include <optional>

#include "serving/requests/event_loop.h"
#include "serving/requests/next_event.h"
#include "serving/simulation/replica.h"
#include "serving/simulation/simulation_config.h"

namespace foretoken {

// Told that something happened at a replica by itself.
class EngineListener {
 public:
  virtual ~EngineListener() = default;
  virtual void changed(size_t replica, Picoseconds now) = 0;
};

// Of equal times the replica added first goes first.
class Engines final : public Component {
 public:
  // `config` and `listener` outlive this.
  Engines(const SimulationConfig& config, EngineListener& listener);
  // With the run's tiers below its cache, or without.
  void add(const ReplicaConfig& replica, RunObserver& observer, bool has_tiers);
  // All of the config, with tiers.
  void add_all(RunObserver& observer);

  Picoseconds next_step() const { return events_.when(); }
  Picoseconds next_event(Picoseconds /*now*/) override { return next_step(); }
  void advance(Picoseconds now) override;

  std::deque<Replica>& replicas() { return replicas_; }
  const std::deque<Replica>& replicas() const { return replicas_; }
  // To be told of every change at a replica that came from outside.
  void touch(size_t replica) { events_.set(replica, replicas_[replica].next_event().value_or(end_of_time)); }

  KvTierUsage kv_tier_usage() const;
  // When nothing is left to do.
  SimulationTotals final_totals() const;

 private:
  const SimulationConfig& config_;
  EngineListener* listener_;
  std::optional<KvTiers> tiers_;
  NextEvent events_;
  std::deque<Replica> replicas_;
};

}  // namespace foretoken
