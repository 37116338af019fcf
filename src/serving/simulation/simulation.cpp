#include "serving/simulation/simulation.h"

#include <algorithm>

#include "base/error.h"
#include "serving/simulation/colocated_simulation.h"
#include "serving/simulation/disaggregated_simulation.h"
#include "serving/simulation/fleet_simulation.h"
#include "serving/simulation/routed_replicas.h"
#include "serving/stages/staged_source.h"

namespace foretoken {
namespace {

SimulationTotals simulate_routed(const SimulationConfig& config, RequestSource& source, RunObserver& observer) {
  RoutedReplicas engines(config, observer);
  while (true) {
    const Picoseconds event = engines.next_event();
    source.nothing_ends_before(event);
    const Picoseconds arrival = source.next_arrival().value_or(end_of_time);
    if (arrival == end_of_time && event == end_of_time) break;
    // What arrives when a step ends is read with it.
    if (arrival <= event) {
      check_arrival(arrival, engines.now());
      engines.arrive(source.next(), arrival);
    } else {
      engines.advance();
    }
    for (const Replica::Ended& ended : engines.take_ended()) ended.tell(source);
  }
  return engines.final_totals();
}

SimulationTotals simulate_engines(const SimulationConfig& config, RequestSource& source, RunObserver& observer) {
  if (config.disaggregation) return simulate_disaggregated(config, source, observer);
  if (config.fleet) return simulate_fleet(config, source, observer);
  if (config.colocation) return simulate_colocated(config, source, observer);
  return simulate_routed(config, source, observer);
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

SimulationTotals simulate(const SimulationConfig& config, RequestSource& source, RunObserver& observer) {
  if (config.stages.empty()) return simulate_samples(config, source, observer);
  StagedSource staged(config.stages, config.bound, source);
  SimulationTotals totals = simulate_samples(config, staged, observer);
  totals.stages = staged.uses();
  return totals;
}

}  // namespace foretoken
