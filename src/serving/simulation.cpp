#include "serving/simulation.h"

#include <algorithm>
#include <deque>

#include "base/error.h"
#include "serving/colocation/colocated_simulation.h"
#include "serving/disaggregated_simulation.h"
#include "serving/fleet/fleet_simulation.h"
#include "serving/next_event.h"
#include "serving/placement.h"
#include "serving/replica_set.h"

namespace foretoken {
namespace {

class Simulation {
 public:
  Simulation(const SimulationConfig& config, RequestSource& source, RunObserver& observer)
      : source_(&source),
        tiers_(config.kv_tiers ? std::make_optional<KvTiers>(*config.kv_tiers) : std::nullopt),
        events_(config.replicas.size()),
        replicas_(make_replicas(config, observer, tiers_ ? &*tiers_ : nullptr)),
        placement_(router_kind(config.router).make(config.seed), replicas_, 0, replicas_.size()) {}

  SimulationTotals run() {
    while (true) {
      const Picoseconds arrival = source_->next_arrival().value_or(end_of_time);
      const Picoseconds event = events_.when();
      if (arrival == end_of_time && event == end_of_time) break;
      // What arrives when a step ends is read with it.
      if (arrival <= event) {
        take_arrival(arrival);
      } else {
        ensure(event >= now_, "time never goes back");
        now_ = event;
        const size_t replica = events_.replica();
        replicas_[replica].advance(now_);
        note(replica);
      }
    }
    SimulationTotals totals = totals_of(replicas_);
    if (tiers_) totals.kv_tiers = tiers_->final_usage();
    return totals;
  }

 private:
  void take_arrival(Picoseconds arrival) {
    check_arrival(arrival, now_);
    now_ = arrival;
    Request request = source_->next();
    const size_t chosen = placement_.choose(request);
    replicas_[chosen].arrive(std::move(request), now_);
    note(chosen);
  }

  // Takes up what changed at a replica.
  void note(size_t index) {
    Replica& replica = replicas_[index];
    events_.set(index, replica.next_event().value_or(end_of_time));
    placement_.note(index);
    for (const Replica::Ended& ended : replica.take_ended()) ended.tell(*source_);
  }

  RequestSource* source_;
  std::optional<KvTiers> tiers_;
  NextEvent events_;
  std::deque<Replica> replicas_;
  Placement placement_;
  Picoseconds now_ = 0;
};

}  // namespace

void SimulationTotals::add(const SimulationTotals& part) {
  completed += part.completed;
  rejected += part.rejected;
  preemptions += part.preemptions;
  steps += part.steps;
  decisions += part.decisions;
  end = std::max(end, part.end);
}

SimulationTotals simulate(const SimulationConfig& config, RequestSource& source, RunObserver& observer) {
  if (config.disaggregation) return simulate_disaggregated(config, source, observer);
  if (config.fleet) return simulate_fleet(config, source, observer);
  if (config.colocation) return simulate_colocated(config, source, observer);
  return Simulation(config, source, observer).run();
}

}  // namespace foretoken
