#include "serving/simulation/simulation.h"

#include <memory>
#include <optional>

#include "serving/simulation/fleet_replicas.h"
#include "serving/simulation/routed_replicas.h"
#include "serving/simulation/separate_pools.h"
#include "serving/simulation/shared_device.h"
#include "serving/stages/stage_line.h"

namespace foretoken {
namespace {

std::unique_ptr<Site> make_site(const SimulationConfig& config, RequestEnds& ends, RunObserver& observer) {
  if (config.disaggregation) return make_separate_pools(config, ends, observer);
  if (config.fleet) return make_fleet_replicas(config, ends, observer);
  if (config.colocation) return make_shared_device(config, ends, observer);
  return std::make_unique<RoutedReplicas>(config, ends, observer);
}

}  // namespace

SimulationTotals simulate(const SimulationConfig& config, RequestSource& source, RunObserver& observer) {
  RunParts parts = parts_of(config);
  observer.add_parts(parts);
  parts.check();
  RequestEnds* ends = &source;
  RunObserver* told = &observer;
  std::optional<SampleGroups> samples;
  if (config.samples.count > 1) {
    samples.emplace(config.samples, config.seed, source, observer);
    ends = &*samples;
    told = &*samples;
  }
  const std::unique_ptr<Site> site = make_site(config, *ends, *told);
  RequestTaker* first = site.get();
  if (samples) {
    samples->feed(*first);
    first = &*samples;
  }
  std::optional<StageLine> stages;
  if (!config.stages.empty()) first = &stages.emplace(config.stages, config.bound, *first);
  RequestArrivals arrivals(source, *first);

  EventLoop loop;
  site->join(loop);
  if (stages) loop.add(*stages);
  loop.add(arrivals);
  loop.run();

  SimulationTotals totals = site->final_totals(loop.now());
  if (samples) {
    totals.completed = samples->completed();
    totals.rejected = samples->rejected_requests();
  }
  if (stages) totals.stages = stages->uses();
  return totals;
}

}  // namespace foretoken
