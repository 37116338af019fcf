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
#include "serving/stages/staged_source.h"

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
      const Picoseconds event = events_.when();
      source_->nothing_ends_before(event);
      const Picoseconds arrival = source_->next_arrival().value_or(end_of_time);
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

SimulationTotals simulate_engines(const SimulationConfig& config, RequestSource& source, RunObserver& observer) {
  if (config.disaggregation) return simulate_disaggregated(config, source, observer);
  if (config.fleet) return simulate_fleet(config, source, observer);
  if (config.colocation) return simulate_colocated(config, source, observer);
  return Simulation(config, source, observer).run();
}

SimulationTotals simulate_samples(const SimulationConfig& config, RequestSource& source, RunObserver& observer) {
  if (config.samples.count == 1) return simulate_engines(config, source, observer);
  SampleGroups groups(config.samples, config.seed, source, observer);
  SimulationTotals totals = simulate_engines(config, groups, groups);
  totals.completed = groups.completed();
  totals.rejected = groups.rejected_requests();
  return totals;
}

}  // namespace

double at_bound(const Estimate& estimate, StepBound bound) {
  return bound == StepBound::value ? estimate.value : bound == StepBound::low ? estimate.low : estimate.high;
}

void SimulationTotals::add(const SimulationTotals& part) {
  completed += part.completed;
  rejected += part.rejected;
  preemptions += part.preemptions;
  steps += part.steps;
  decisions += part.decisions;
  end = std::max(end, part.end);
}

SimulationTotals simulate(const SimulationConfig& config, RequestSource& source, RunObserver& observer) {
  if (config.stages.empty()) return simulate_samples(config, source, observer);
  StagedSource staged(config.stages, config.bound, source);
  SimulationTotals totals = simulate_samples(config, staged, observer);
  totals.stages = staged.uses();
  return totals;
}

}  // namespace foretoken
