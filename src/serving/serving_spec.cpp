#include "serving/serving_spec.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/error.h"
#include "library/library.h"
#include "serving/engine/engine_setup.h"
#include "serving/engine/load_texts.h"

namespace foretoken {
namespace {

// What the specs ask for, before an engine is built.
RunParts parts_of(const std::vector<EngineSpec>& engines, const DeploymentSpec& deployment,
                  const SimulationConfig& config) {
  RunParts parts = parts_of(config);
  if (deployment.prefill) parts.add(RunPart::separate_pools);
  for (const EngineSpec& engine : engines) {
    if (engine.lora) parts.add(RunPart::adapters);
    if (engine.ffn) parts.add(RunPart::ffn_pool);
  }
  for (const RunObserver* observer : deployment.observers) observer->add_parts(parts);
  return parts;
}

void check_count(const char* field, size_t given, size_t replicas) {
  if (given == replicas) return;
  throw InputError({.source = field,
                    .value = fmt::format("{} replicas", given),
                    .expected = fmt::format("{}, as the engines are set up", replicas)});
}

// Of the parts that say something of each replica.
void check_counts(const SimulationConfig& config) {
  const size_t replicas = config.replicas.size();
  const size_t with_tiers = config.disaggregation ? config.disaggregation->prefill_replicas : replicas;
  if (config.kv_tiers) {
    check_count("deployment.kv_tiers.node_of_replica", config.kv_tiers->node_of_replica.size(), with_tiers);
  }
  if (config.fleet) {
    size_t in_pools = 0;
    for (const FleetPool& pool : config.fleet->pools) in_pools += static_cast<size_t>(pool.members);
    check_count("deployment.fleet.members", config.fleet->members.size(), replicas);
    check_count("deployment.fleet.pools", in_pools, replicas);
  }
  if (config.colocation) check_count("deployment.colocation.engines", config.colocation->engines.size(), replicas);
}

}  // namespace

ServingPrediction simulate_serving(const Library& library, const EngineSpec& engine, const LoadSpec& load,
                                   const DeploymentSpec& deployment) {
  EngineBuilder builder(serving_facts(library, deployment.tier));
  return simulate_serving(builder, engine, load, deployment);
}

ServingPrediction simulate_serving(EngineBuilder& builder, const EngineSpec& engine, const LoadSpec& load,
                                   const DeploymentSpec& deployment) {
  ServingPrediction result{
      .load = load, .groups = {}, .percentiles = deployment.percentiles, .run = {}, .priorities = {}};
  std::vector<EngineSpec> specs = {engine};
  if (deployment.prefill) {
    if (!deployment.other_engines.empty()) {
      throw InputError({.source = "other_engines", .value = "with prefill", .expected = "only one of the two"});
    }
    specs.insert(specs.begin(), deployment.prefill->engine);
  }
  specs.insert(specs.end(), deployment.other_engines.begin(), deployment.other_engines.end());
  ServingRunRequest request;
  request.config.kv_tiers = deployment.kv_tiers;
  request.config.fleet = deployment.fleet;
  request.config.colocation = deployment.colocation;
  request.config.stages = deployment.stages;
  request.config.samples = deployment.samples;
  parts_of(specs, deployment, request.config).check();
  int64_t ranks = 1;
  for (EngineSpec& spec : specs) {
    spec.offline = spec.offline || load.is_offline();
    suit_texts(spec, load.texts);
    const ReplicaGroup& group = result.groups.emplace_back(builder.build(spec));
    ranks = std::max(ranks, group.data_parallel_ranks);
    request.config.replicas.insert(request.config.replicas.end(), static_cast<size_t>(group.count), group.config);
  }
  if (deployment.prefill) {
    const ReplicaGroup &prefill = result.groups.front(), &decode = result.groups.back();
    request.config.disaggregation = disaggregation_of(
        {prefill, prefill.count}, {decode, decode.count}, engine.flags.engine, deployment.prefill->transfer,
        [&](const Device& device) { return builder.facts().node(device, engine.placement); });
  }
  check_counts(request.config);
  request.config.router = deployment.router.empty() ? usual_router(engine.flags.engine, ranks) : deployment.router;
  request.config.seed = deployment.seed;
  request.config.bound = deployment.bound;
  request.load = make_load(load);
  request.goals = deployment.goals;
  request.percentiles = deployment.percentiles;
  request.step_bounds = deployment.step_bounds;
  request.more_seeds = deployment.more_seeds;
  request.observers = deployment.observers;
  PriorityMetrics priorities;
  request.observers.push_back(&priorities);
  result.run = run_serving(request);
  result.priorities = priorities.latencies(deployment.percentiles);
  return result;
}

}  // namespace foretoken
