#include "serving/serving_spec.h"

#include <algorithm>

#include "base/error.h"
#include "library/library.h"
#include "serving/engine/engine_setup.h"

namespace foretoken {

ServingPrediction simulate_serving(const Library& library, const EngineSpec& engine, const LoadSpec& load,
                                   const DeploymentSpec& deployment) {
  EngineBuilder builder(serving_facts(library, deployment.tier));
  return simulate_serving(builder, engine, load, deployment);
}

ServingPrediction simulate_serving(EngineBuilder& builder, const EngineSpec& engine, const LoadSpec& load,
                                   const DeploymentSpec& deployment, const std::vector<RunObserver*>& observers) {
  ServingPrediction result{
      .load = load, .groups = {}, .percentiles = deployment.percentiles, .run = {}, .priorities = {}};
  std::vector<EngineSpec> specs = {engine};
  if (deployment.prefill) {
    if (!deployment.other_engines.empty()) {
      throw InputError({.source = "other_engines", .value = "with prefill", .expected = "one or the other"});
    }
    specs.insert(specs.begin(), deployment.prefill->engine);
  }
  specs.insert(specs.end(), deployment.other_engines.begin(), deployment.other_engines.end());
  ServingRunRequest request;
  int64_t ranks = 1;
  for (EngineSpec& spec : specs) {
    spec.offline = spec.offline || load.is_offline();
    const ReplicaGroup& group = result.groups.emplace_back(builder.build(spec));
    ranks = std::max(ranks, group.data_parallel_ranks);
    request.config.replicas.insert(request.config.replicas.end(), static_cast<size_t>(group.count), group.config);
  }
  if (deployment.prefill) {
    request.config.disaggregation = disaggregation_of(result.groups.front(), result.groups.back(), engine.flags.engine,
                                                      deployment.prefill->transfer, builder.facts().node);
  }
  request.config.router = deployment.router.empty() ? usual_router(engine.flags.engine, ranks) : deployment.router;
  request.config.seed = deployment.seed;
  request.config.bound = deployment.bound;
  request.load = make_load(load);
  request.goals = deployment.goals;
  request.percentiles = deployment.percentiles;
  request.step_bounds = deployment.step_bounds;
  request.more_seeds = deployment.more_seeds;
  PriorityMetrics priorities;
  request.observers = observers;
  request.observers.push_back(&priorities);
  result.run = run_serving(request);
  result.priorities = priorities.latencies(deployment.percentiles);
  return result;
}

}  // namespace foretoken
