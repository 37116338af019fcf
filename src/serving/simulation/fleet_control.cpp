#include "serving/simulation/fleet_control.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "base/units.h"

namespace foretoken {
namespace {

Picoseconds interval_of(const FleetConfig& config) {
  return to_picoseconds(Seconds(config.scaling.interval_s));
}

}  // namespace

FleetControl::FleetControl(const FleetConfig& config, uint64_t seed, std::deque<Replica>& replicas,
                           std::vector<Placement*> placements, FleetListener& listener)
    : Component(EventOrder::changes),
      config_(config),
      replicas_(&replicas),
      listener_(&listener),
      lifecycle_(config.members),
      changes_(config.members.size()) {
  ensure(config.members.size() == replicas.size(), "every replica of a fleet is a member");
  ensure(config.pools.size() == placements.size(), "every pool has a router");
  for (size_t i = 0; i < replicas.size(); ++i) failures_.emplace_back(seed, fmt::format("failures {}", i));
  size_t first = 0;
  for (size_t i = 0; i < config.pools.size(); ++i) {
    const FleetPool& pool = config.pools[i];
    const size_t end = first + static_cast<size_t>(pool.members);
    pools_.push_back({.first = first,
                      .end = end,
                      .placement = placements[i],
                      .scaling = {config.scaling, pool, to_seconds(config.members[first].cold_start)}});
    pool_of_.insert(pool_of_.end(), end - first, i);
    for (size_t replica = first; replica < end; ++replica) {
      const bool serves = replica < first + static_cast<size_t>(pool.at_start);
      serves ? serve(replica, 0) : show(replica, false);
    }
    first = end;
  }
  ensure(first == replicas.size(), "every replica is in a pool");
  if (config.scaling.kind != "none") next_look_ = interval_of(config);
}

Picoseconds FleetControl::next_drain() const {
  return drains_made_ < config_.drains.size() ? config_.drains[drains_made_] : end_of_time;
}

Picoseconds FleetControl::next_event(Picoseconds /*now*/) {
  return std::min({changes_.when(), next_look_, next_drain()});
}

void FleetControl::advance(Picoseconds now) {
  if (changes_.when() <= now) {
    const size_t replica = changes_.replica();
    if (lifecycle_.state(replica) == ReplicaState::starting) {
      serve(replica, now);
      show(replica, true);
      listener_->began_to_serve(replica, now);
    } else {
      fail(replica, now);
    }
  } else if (next_look_ <= now) {
    next_look_ = later(next_look_, interval_of(config_));
    for (size_t pool = 0; pool < pools_.size(); ++pool) look_at(pool, now);
  } else {
    ++drains_made_;
    for (const Pool& pool : pools_) replace_oldest(pool, now);
  }
}

void FleetControl::arrived(size_t pool, const Request& request) {
  pools_[pool].scaling.arrived(request.input_tokens, request.output_tokens);
}

void FleetControl::settle(size_t replica, bool expects_more, Picoseconds now) {
  if (lifecycle_.state(replica) != ReplicaState::draining || expects_more || !(*replicas_)[replica].idle()) return;
  ++counts_.stops;
  order_off(replica, now);
  reconcile(pools_[pool_of_[replica]], now);
}

FleetTotals FleetControl::totals(Picoseconds now) const {
  FleetTotals totals = counts_;
  totals.gpu_seconds = lifecycle_.gpu_seconds(now);
  totals.sizes = lifecycle_.sizes();
  return totals;
}

void FleetControl::start(size_t replica, Picoseconds now) {
  ++counts_.starts;
  lifecycle_.change(replica, ReplicaState::starting, now);
  changes_.set(replica, later(now, config_.members[replica].cold_start));
}

void FleetControl::serve(size_t replica, Picoseconds now) {
  lifecycle_.change(replica, ReplicaState::serving, now);
  changes_.set(replica, next_failure(replica, now));
}

Picoseconds FleetControl::next_failure(size_t replica, Picoseconds now) {
  const double hours = config_.failures.gpu_mtbf_hours;
  if (hours <= 0) return end_of_time;
  const double mean = hours * seconds_per_hour / static_cast<double>(config_.members[replica].devices);
  const double drawn = failures_[replica].exponential(mean);
  const bool within = to_seconds(now).value() + drawn < longest_simulated_time.value();
  return within ? now + to_picoseconds(Seconds(drawn)) : end_of_time;
}

// It stops at once where it has nothing: nobody is told that a replica without requests settled.
void FleetControl::drain(size_t replica, Picoseconds now) {
  lifecycle_.change(replica, ReplicaState::draining, now);
  show(replica, false);
  if (!(*replicas_)[replica].idle()) return;
  ++counts_.stops;
  order_off(replica, now);
}

void FleetControl::order_off(size_t replica, Picoseconds now) {
  lifecycle_.change(replica, ReplicaState::off, now);
  changes_.set(replica, end_of_time);
  show(replica, false);
  listener_->stopped(replica, (*replicas_)[replica].shut_down(now), now);
}

void FleetControl::fail(size_t replica, Picoseconds now) {
  ++counts_.failures;
  order_off(replica, now);
  reconcile(pools_[pool_of_[replica]], now);
}

void FleetControl::look_at(size_t index, Picoseconds now) {
  Pool& pool = pools_[index];
  FleetView view{.now_s = to_seconds(now).value(), .outstanding = listener_->held(index)};
  for (size_t i = pool.first; i < pool.end; ++i) {
    view.starting += lifecycle_.state(i) == ReplicaState::starting ? 1 : 0;
    if (!serves(i)) continue;
    const ReplicaLoad load = (*replicas_)[i].load();
    ++view.serving;
    view.outstanding += load.outstanding;
    view.kv_use += static_cast<double>(load.blocks_used) / static_cast<double>(std::max<int64_t>(1, load.blocks));
  }
  pool.scaling.look(view);
  reconcile(pool, now);
}

// Starts what is missing; ends what is too many: those that do not serve yet, then those with the fewest requests.
void FleetControl::reconcile(const Pool& pool, Picoseconds now) {
  int64_t missing = pool.scaling.wanted();
  for (size_t i = pool.first; i < pool.end; ++i) {
    missing -= serves(i) || lifecycle_.state(i) == ReplicaState::starting ? 1 : 0;
  }
  for (size_t i = pool.first; i < pool.end && missing > 0; ++i) {
    if (lifecycle_.state(i) != ReplicaState::off) continue;
    start(i, now);
    --missing;
  }
  for (size_t i = pool.end; i-- > pool.first && missing < 0;) {
    if (lifecycle_.state(i) != ReplicaState::starting) continue;
    order_off(i, now);
    ++missing;
  }
  for (; missing < 0; ++missing) drain(least_busy(pool), now);
}

size_t FleetControl::least_busy(const Pool& pool) const {
  size_t best = pool.end;
  for (size_t i = pool.first; i < pool.end; ++i) {
    if (!serves(i)) continue;
    if (best == pool.end || (*replicas_)[i].load().outstanding <= (*replicas_)[best].load().outstanding) best = i;
  }
  ensure(best < pool.end, "what is too many serves");
  return best;
}

void FleetControl::replace_oldest(const Pool& pool, Picoseconds now) {
  size_t oldest = pool.end;
  for (size_t i = pool.first; i < pool.end; ++i) {
    if (!serves(i)) continue;
    if (oldest == pool.end || lifecycle_.since(i) < lifecycle_.since(oldest)) oldest = i;
  }
  if (oldest == pool.end) return;
  drain(oldest, now);
  reconcile(pool, now);
}

}  // namespace foretoken
