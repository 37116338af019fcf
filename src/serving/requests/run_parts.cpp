#include "serving/requests/run_parts.h"

#include <algorithm>
#include <utility>

#include "base/error.h"

namespace foretoken {

std::span<const RefusedPair> refused_pairs() {
  using enum RunPart;
  static constexpr std::string_view one_output = "one output per request";
  static constexpr std::string_view autoscaler_alone = "separate pools that only an autoscaler starts and stops";
  static constexpr RefusedPair pairs[] = {
      {colocation, fleet, "only one of the two: engines that share a GPU cannot be added or removed"},
      {colocation, separate_pools, "only one of the two: engines that share a GPU run both prefill and decode"},
      {kv_tiers, colocation, "only one of the two: engines that share a GPU have no tiers below their KV caches"},
      {kv_tiers, fleet, "only one of the two: replicas that are added and removed have no tiers below their KV caches"},
      {kv_tiers, adapters, "only one of the two: KV blocks computed with an adapter are not kept in tiers"},
      {kv_tiers, samples, one_output},
      {energy, colocation, "only one of the two: the energy of a shared GPU is not modeled"},
      {energy, fleet, "only one of the two: the energy of replicas that are added and removed is not modeled"},
      {energy, ffn_pool, "only one of the two: the power of feed-forward GPUs is not known"},
      {ffn_pool, adapters, "only one of the two: adapters need attention and feed-forward layers on the same GPUs"},
      {ffn_pool, colocation, "only one of the two: engines that share a GPU run whole layers"},
      {adapters, separate_pools, "engines that run whole requests: adapters are not simulated with separate pools"},
      {pooled_requests, separate_pools, "engines that run whole requests: embeddings and scores have no decode phase"},
      {request_details, samples, one_output},
      {request_life, samples, one_output},
      {separate_pools, failures, autoscaler_alone},
      {separate_pools, drains, autoscaler_alone},
      {separate_pools, admission, autoscaler_alone},
      {separate_pools, regions, autoscaler_alone},
  };
  return pairs;
}

std::string_view spec_field(RunPart part) {
  using enum RunPart;
  switch (part) {
    case colocation:
      return "deployment.colocation";
    case fleet:
      return "deployment.fleet";
    case failures:
      return "deployment.fleet.failures";
    case drains:
      return "deployment.fleet.drains";
    case admission:
      return "deployment.fleet.admission";
    case regions:
      return "deployment.fleet.region_policy";
    case separate_pools:
      return "deployment.prefill";
    case kv_tiers:
      return "deployment.kv_tiers";
    case adapters:
      return "engine.lora";
    case ffn_pool:
      return "engine.ffn";
    case samples:
      return "deployment.samples";
    case pooled_requests:
      return "request.pooled";
    case energy:
      return "deployment.observers: energy";
    case request_details:
      return "deployment.observers: request details";
    case request_life:
      return "deployment.observers: life of a request";
  }
  return "";
}

void RunParts::add(RunPart part, std::string name) {
  names_.insert_or_assign(part, name.empty() ? std::string(spec_field(part)) : std::move(name));
}

bool RunParts::accepts(RunPart part) const {
  const std::span<const RefusedPair> pairs = refused_pairs();
  return std::none_of(pairs.begin(), pairs.end(), [&](const RefusedPair& pair) {
    return (pair.part == part && names_.contains(pair.with)) || (pair.with == part && names_.contains(pair.part));
  });
}

void RunParts::check() const {
  for (const RefusedPair& pair : refused_pairs()) {
    const auto part = names_.find(pair.part), with = names_.find(pair.with);
    if (part == names_.end() || with == names_.end()) continue;
    throw InputError({.source = part->second, .value = "with " + with->second, .expected = std::string(pair.expected)});
  }
}

}  // namespace foretoken
