// Starts, drains and replaces the replicas of one or several pools.
#pragma once

#include <cstddef>
#include <deque>
#include <vector>

#include "base/random.h"
#include "serving/fleet/lifecycle.h"
#include "serving/fleet/scaling.h"
#include "serving/requests/event_loop.h"
#include "serving/requests/next_event.h"
#include "serving/simulation/placement.h"
#include "serving/simulation/replica.h"

namespace foretoken {

// Told what happens to replicas, after it has.
class FleetListener {
 public:
  virtual ~FleetListener() = default;
  virtual void began_to_serve(size_t replica, Picoseconds now) = 0;
  // A new, idle engine stands in its place, off. `interrupted`: what it had, after a failure.
  virtual void stopped(size_t replica, std::vector<Replica::Interrupted>&& interrupted, Picoseconds now) = 0;
  virtual int64_t held(size_t pool) const = 0;  // requests of the pool that no replica has
};

// Failed replicas and those too few are replaced after a cold start; those too many drain. Shows routers only what
// serves.
class FleetControl final : public Component {
 public:
  // `placements` by pool, over all `replicas`, which are members in the order of the pools. All outlive this.
  FleetControl(const FleetConfig& config, uint64_t seed, std::deque<Replica>& replicas,
               std::vector<Placement*> placements, FleetListener& listener);

  Picoseconds next_event(Picoseconds now) override;
  void advance(Picoseconds now) override;

  // A request came to the pool.
  void arrived(size_t pool, const Request& request);
  // Something ended at a replica; `expects_more`: it will get requests that it does not have yet.
  void settle(size_t replica, bool expects_more, Picoseconds now);

  bool serves(size_t replica) const { return lifecycle_.state(replica) == ReplicaState::serving; }
  size_t pool_of(size_t replica) const { return pool_of_[replica]; }
  // Up to now, without what becomes of requests.
  FleetTotals totals(Picoseconds now) const;

 private:
  struct Pool {
    size_t first = 0, end = 0;
    Placement* placement;
    PoolScaling scaling;
  };

  void start(size_t replica, Picoseconds now);
  void serve(size_t replica, Picoseconds now);
  void drain(size_t replica, Picoseconds now);
  void order_off(size_t replica, Picoseconds now);
  void fail(size_t replica, Picoseconds now);
  void look_at(size_t pool, Picoseconds now);
  void reconcile(const Pool& pool, Picoseconds now);
  void replace_oldest(const Pool& pool, Picoseconds now);
  size_t least_busy(const Pool& pool) const;
  Picoseconds next_failure(size_t replica, Picoseconds now);
  Picoseconds next_drain() const;
  void show(size_t replica, bool shown) { pools_[pool_of_[replica]].placement->show(replica, shown); }

  const FleetConfig& config_;
  std::deque<Replica>* replicas_;
  FleetListener* listener_;
  Lifecycle lifecycle_;
  NextEvent changes_;                   // of replicas: they begin to serve, or fail
  std::vector<RandomStream> failures_;  // by replica
  std::deque<Pool> pools_;
  std::vector<size_t> pool_of_;  // by replica
  Picoseconds next_look_ = end_of_time;
  size_t drains_made_ = 0;
  FleetTotals counts_;
};

}  // namespace foretoken
