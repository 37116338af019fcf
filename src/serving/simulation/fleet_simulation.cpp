#include "serving/simulation/fleet_simulation.h"

#include <algorithm>
#include <deque>
#include <optional>
#include <utility>

#include "base/error.h"
#include "serving/requests/next_event.h"
#include "serving/simulation/fleet_control.h"
#include "serving/simulation/placement.h"
#include "serving/simulation/replica_set.h"

namespace foretoken {
namespace {

class FleetSimulation final : public FleetListener {
 public:
  FleetSimulation(const SimulationConfig& config, RequestSource& source, RunObserver& observer)
      : fleet_(*config.fleet),
        source_(&source),
        events_(config.replicas.size()),
        replicas_(make_replicas(config, observer)),
        rates_(config.replicas.size()),
        held_(fleet_.pools.size()) {
    for (const ReplicaConfig& replica : config.replicas) times_.push_back(replica.times);
    std::vector<Placement*> placements;
    size_t first = 0;
    for (const FleetPool& pool : fleet_.pools) {
      const auto members = static_cast<size_t>(pool.members);
      placements_.emplace_back(router_kind(config.router).make(config.seed), replicas_, first, members);
      placements.push_back(&placements_.back());
      first += members;
    }
    control_.emplace(fleet_, config.seed, replicas_, std::move(placements), *this);
  }

  SimulationTotals run() {
    while (true) {
      const Picoseconds event = events_.when();
      const Picoseconds reached = travelling_.empty() ? end_of_time : travelling_.front().when;
      const Picoseconds change = control_->next_change();
      source_->nothing_ends_before(std::min({event, reached, change}));
      const Picoseconds arrival = source_->next_arrival().value_or(end_of_time);
      if (arrival == end_of_time && event == end_of_time && travelling_.empty() && !any_held()) break;
      check_arrival(arrival, now_);
      const Picoseconds next = std::min({arrival, event, reached, change});
      ensure(next >= now_ && next < end_of_time, "time goes on while there is something to do");
      now_ = next;
      // What arrives when a step ends is read with it.
      if (change == now_) {
        control_->make_change(now_);
      } else if (reached == now_) {
        reach();
      } else if (arrival == now_) {
        take_arrival();
      } else {
        const size_t replica = events_.replica();
        replicas_[replica].advance(now_);
        note(replica);
      }
    }
    SimulationTotals totals = totals_of(replicas_);
    totals.fleet = control_->totals(now_);
    totals.fleet.retried = retried_;
    totals.fleet.lost_tokens = lost_tokens_;
    totals.fleet.remote = remote_;
    return totals;
  }

  void began_to_serve(size_t replica) override {
    const size_t pool = control_->pool_of(replica);
    for (Held& held : std::exchange(held_[pool], {})) place(std::move(held.request), pool, held.is_new);
  }

  void stopped(size_t replica, std::vector<Replica::Interrupted>&& interrupted) override {
    rates_[replica] = {};
    for (Replica::Interrupted& one : interrupted) {
      lost_tokens_ += one.tokens_out;
      if (fleet_.failures.retry) {
        ++retried_;
        one.request.follows = false;  // where the others went may be gone
        send(std::move(one.request), false);
      } else {
        replicas_[replica].reject(one.request, Rejection::lost, now_);
      }
    }
    note(replica);
  }

  int64_t held(size_t pool) const override { return static_cast<int64_t>(held_[pool].size()); }

 private:
  // Until a replica serves.
  struct Held {
    Request request;
    bool is_new = true;  // else a replica had it that failed
  };
  // On its way to another region.
  struct Travelling {
    Picoseconds when = 0;
    size_t pool = 0;
    Request request;
    bool is_new = true;
  };

  bool any_held() const {
    return std::any_of(held_.begin(), held_.end(), [](const std::deque<Held>& held) { return !held.empty(); });
  }

  void take_arrival() {
    Request request = source_->next();
    control_->arrived(home_of(request), request);
    send(std::move(request), true);
  }

  size_t home_of(const Request& request) const {
    ensure(request.region >= 0 && static_cast<size_t>(request.region) < placements_.size(), "a request has a region");
    return static_cast<size_t>(request.region);
  }

  // From its region to the one that serves it.
  void send(Request&& request, bool is_new) {
    const size_t home = home_of(request), chosen = choose_pool(home);
    if (chosen == home) {
      place(std::move(request), chosen, is_new);
      return;
    }
    ++remote_;
    const Picoseconds when = later(now_, fleet_.region_policy.round_trip);
    travelling_.push_back({.when = when, .pool = chosen, .request = std::move(request), .is_new = is_new});
  }

  void reach() {
    Travelling travelling = std::move(travelling_.front());
    travelling_.pop_front();
    place(std::move(travelling.request), travelling.pool, travelling.is_new);
  }

  size_t choose_pool(size_t home) {
    if (fleet_.region_policy.spill == Spill::never) return home;
    const int64_t at_home = shortest_queue(home);
    if (at_home <= fleet_.region_policy.most_waiting) return home;
    size_t best = home;
    int64_t least = at_home;
    for (size_t i = 0; i < placements_.size(); ++i) {
      if (const int64_t waiting = shortest_queue(i); waiting < least) {
        least = waiting;
        best = i;
      }
    }
    return best;
  }

  int64_t shortest_queue(size_t pool) const {
    int64_t least = end_of_time;
    for (size_t i = 0; i < replicas_.size(); ++i) {
      if (control_->pool_of(i) != pool || !control_->serves(i)) continue;
      least = std::min(least, replicas_[i].load().waiting);
    }
    return least;
  }

  void place(Request&& request, size_t pool, bool is_new) {
    const size_t chosen = placements_[pool].choose(request);
    Replica& replica = replicas_[chosen];
    if (replica.rejection(request) == Rejection::none) {
      if (!control_->serves(chosen)) {
        held_[pool].push_back({.request = std::move(request), .is_new = is_new});
        return;
      }
      if (const Rejection why = is_new ? refused(request, chosen) : Rejection::none; why != Rejection::none) {
        replica.reject(request, why, now_);
        note(chosen);
        return;
      }
    }
    replica.arrive(std::move(request), now_);
    note(chosen);
  }

  Rejection refused(const Request& request, size_t replica) {
    if (!fleet_.admission.any()) return Rejection::none;
    Picoseconds prompt = 0;
    if (fleet_.admission.most_ttft) {
      const PromptChunk chunk{.new_tokens = request.input_tokens};
      prompt = to_picoseconds(Seconds(times_[replica]->step_seconds({.prompts = {&chunk, 1}}).value));
    }
    return refusal(fleet_.admission, request, replicas_[replica].load(), rates_[replica], prompt);
  }

  // Takes up what changed at a replica.
  void note(size_t index) {
    Replica& replica = replicas_[index];
    events_.set(index, replica.next_event().value_or(end_of_time));
    placements_[control_->pool_of(index)].note(index);
    for (const Replica::Ended& ended : replica.take_ended()) {
      ended.tell(*source_);
      if (ended.outcome == RequestOutcome::completed) rates_[index].ended(ended.when);
    }
    control_->settle(index, false, now_);
  }

  const FleetConfig& fleet_;
  RequestSource* source_;
  NextEvent events_;
  std::deque<Replica> replicas_;
  std::vector<StepTimes*> times_;        // by replica
  std::vector<ServiceRate> rates_;       // by replica
  std::deque<Placement> placements_;     // by pool
  std::vector<std::deque<Held>> held_;   // by pool
  std::optional<FleetControl> control_;  // of all these
  std::deque<Travelling> travelling_;    // all as long: in order
  int64_t retried_ = 0, lost_tokens_ = 0, remote_ = 0;
  Picoseconds now_ = 0;
};

}  // namespace

SimulationTotals simulate_fleet(const SimulationConfig& config, RequestSource& source, RunObserver& observer) {
  return FleetSimulation(config, source, observer).run();
}

}  // namespace foretoken
