// Engines that compute prompts beside engines that decode: how caches move from one pool to the other.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "hardware/node.h"
#include "serving/engine/engine_builder.h"
#include "serving/simulation/disaggregation.h"

namespace foretoken {

struct KvTransfer {
  std::string decode_router = "least_outstanding";
  std::optional<BytesPerSecond> device_bandwidth = {};  // one direction; nothing = the node's fabric or network cards
  Seconds latency = usual_transfer_latency;
  std::optional<FirstToken> first_token = {};  // nothing = the engine's own way
  bool by_layer = false;                       // the cache of each layer leaves as soon as it is computed
};

// What carries caches from one pool to the other, and what was assumed of it.
struct KvLink {
  LinkTraffic traffic;  // of a GPU that computes prompts; `bytes` of a prompt's token
  std::string note;     // with `{fields}`; empty = nothing was assumed
};

// One of the pools: replicas of an engine.
struct EnginePoolSize {
  const ReplicaGroup& engine;
  int64_t replicas = 1;
};

// Nothing where the network is neither given nor known.
std::optional<KvLink> kv_link(const ReplicaGroup& prefill, const ReplicaGroup& decode, const KvTransfer& transfer,
                              const PlacementSpec& placement, const Library& library);

// `node`: what a device usually sits in. InputError where the bandwidth is neither given nor known.
Disaggregation disaggregation_of(const EnginePoolSize& prefill, const EnginePoolSize& decode, std::string_view engine,
                                 const KvTransfer& transfer,
                                 const std::function<std::optional<Node>(const Device&)>& node);

}  // namespace foretoken
