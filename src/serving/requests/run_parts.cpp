#include "serving/requests/run_parts.h"

#include <algorithm>
#include <utility>

#include "base/error.h"

namespace foretoken {

std::span<const RefusedPair> refused_pairs() {
  using enum RunPart;
  static constexpr std::string_view one_output = "one output for each request";
  static constexpr std::string_view autoscaler_alone = "separate workers that an autoscaler alone starts and stops";
  static constexpr RefusedPair pairs[] = {
      {colocation, fleet, "one or the other: engines that share a device do not come and go"},
      {colocation, separate_pools, "one or the other: engines that share a device compute prompts and decode"},
      {kv_tiers, colocation, "one or the other: engines that share a device have no tiers below their KV caches"},
      {kv_tiers, fleet, "one or the other: replicas that come and go have no tiers below their KV caches"},
      {kv_tiers, adapters, "one or the other: blocks computed with an adapter are not kept in tiers"},
      {kv_tiers, samples, one_output},
      {energy, colocation, "one or the other: the energy of a shared device is not metered"},
      {energy, fleet, "one or the other: the energy of replicas that come and go is not metered"},
      {energy, ffn_pool, "one or the other: the power of feed-forward devices is not known"},
      {ffn_pool, adapters, "one or the other: adapters need attention and feed-forward layers on the same devices"},
      {ffn_pool, colocation, "one or the other: engines that share a device run whole layers"},
      {adapters, separate_pools, "engines that compute whole requests: pools with adapters are not simulated"},
      {pooled_requests, separate_pools, "engines that compute whole requests: embeddings and scores decode nothing"},
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
