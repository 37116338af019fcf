#include "serving/simulation/fleet_replicas.h"

#include <algorithm>
#include <deque>
#include <optional>
#include <utility>

#include "base/error.h"
#include "serving/simulation/engines.h"
#include "serving/simulation/fleet_control.h"
#include "serving/simulation/placement.h"

namespace foretoken {
namespace {

class FleetReplicas final : public Site, public Component, public EngineListener, public FleetListener {
 public:
  FleetReplicas(const SimulationConfig& config, RequestEnds& ends, RunObserver& observer)
      : Component(EventOrder::travel),
        fleet_(*config.fleet),
        ends_(&ends),
        engines_(config, *this),
        replicas_(engines_.replicas()),
        rates_(config.replicas.size()),
        held_(fleet_.pools.size()) {
    engines_.add_all(observer);
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

  void join(EventLoop& loop) override {
    loop.add(*control_);
    loop.add(*this);
    loop.add(engines_);
  }

  void accept(Request&& request, Picoseconds now) override {
    now_ = now;
    control_->arrived(home_of(request), request);
    send(std::move(request), true);
  }

  SimulationTotals final_totals(Picoseconds now) override {
    SimulationTotals totals = engines_.final_totals();
    totals.fleet = control_->totals(now);
    totals.fleet.retried = retried_;
    totals.fleet.lost_tokens = lost_tokens_;
    totals.fleet.remote = remote_;
    return totals;
  }

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

  // Of requests between regions.
  Picoseconds next_event(Picoseconds /*now*/) override {
    return travelling_.empty() ? end_of_time : travelling_.front().when;
  }
  void advance(Picoseconds now) override {
    now_ = now;
    Travelling travelling = std::move(travelling_.front());
    travelling_.pop_front();
    place(std::move(travelling.request), travelling.pool, travelling.is_new);
  }
  bool waits_for_change() const override {
    return std::any_of(held_.begin(), held_.end(), [](const std::deque<Held>& held) { return !held.empty(); });
  }

  void changed(size_t replica, Picoseconds now) override {
    now_ = now;
    note(replica);
  }

  void began_to_serve(size_t replica, Picoseconds now) override {
    now_ = now;
    const size_t pool = control_->pool_of(replica);
    for (Held& held : std::exchange(held_[pool], {})) place(std::move(held.request), pool, held.is_new);
  }

  void stopped(size_t replica, std::vector<Replica::Interrupted>&& interrupted, Picoseconds now) override {
    now_ = now;
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
    engines_.touch(index);
    placements_[control_->pool_of(index)].note(index);
    for (const Replica::Ended& ended : replicas_[index].take_ended()) {
      ended.tell(*ends_);
      if (ended.outcome == RequestOutcome::completed) rates_[index].ended(ended.when);
    }
    control_->settle(index, false, now_);
  }

  const FleetConfig& fleet_;
  RequestEnds* ends_;
  Engines engines_;
  std::deque<Replica>& replicas_;        // of them
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

std::unique_ptr<Site> make_fleet_replicas(const SimulationConfig& config, RequestEnds& ends, RunObserver& observer) {
  return std::make_unique<FleetReplicas>(config, ends, observer);
}

}  // namespace foretoken
