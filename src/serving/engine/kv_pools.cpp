#include "serving/engine/kv_pools.h"

#include <fmt/format.h>

#include "base/error.h"
#include "hardware/usual_cluster.h"
#include "library/library.h"
#include "model/weights.h"
#include "serving/engine/engine_setup.h"

namespace foretoken {
namespace {

int64_t devices_of(const EnginePoolSize& pool) {
  return pool.replicas * (pool.engine.cache_devices() + (pool.engine.ffn ? pool.engine.ffn->devices : 0));
}

const Device& device_of(const EnginePoolSize& pool) {
  return pool.engine.models.kernels.device();
}

// Devices of two kinds are in different nodes.
bool is_mixed(const EnginePoolSize& prefill, const EnginePoolSize& decode) {
  return device_of(prefill).name != device_of(decode).name;
}

bool fit_in_one(const Node& node, const EnginePoolSize& prefill, const EnginePoolSize& decode) {
  return !is_mixed(prefill, decode) && devices_of(prefill) + devices_of(decode) <= node.device_count;
}

// One direction out of each device.
BytesPerSecond rate_out(Node node, const EnginePoolSize& prefill, const EnginePoolSize& decode) {
  if (!node.network_cards) node.network_cards = assumed_cards(node.device_count);
  return is_mixed(prefill, decode) ? *network_bandwidth_per_device(node)
                                   : *transfer_bandwidth_per_device(node, devices_of(prefill) + devices_of(decode));
}

}  // namespace

std::optional<KvLink> kv_link(const ReplicaGroup& prefill, const ReplicaGroup& decode, const KvTransfer& transfer,
                              const PlacementSpec& placement, const Library& library) {
  const EnginePoolSize prompts{prefill, prefill.count}, decodes{decode, decode.count};
  const std::optional<Node> node = library.node_of(device_of(prompts), placement);
  const bool in_one_node = node && fit_in_one(*node, prompts, decodes);
  KvLink link{.traffic = {.bytes = kv_bytes_per_token(decode.model, decode.kv_dtype).value() /
                                   static_cast<double>(prefill.cache_devices())},
              .note = {}};
  LinkTraffic& traffic = link.traffic;
  traffic.between_nodes = !in_one_node;
  if (transfer.device_bandwidth) {
    traffic.link = "a link of the bandwidth that was given";
    traffic.bandwidth = transfer.device_bandwidth->value();
    return link;
  }
  if (!node) return std::nullopt;
  const BytesPerSecond bandwidth = rate_out(*node, prompts, decodes);
  traffic.bandwidth = bandwidth.value();
  if (in_one_node) {
    traffic.link = node->fabric.kind == NodeFabricKind::pcie ? "PCIe" : "the links inside the node";
    return link;
  }
  const bool is_named = !placement.cluster.empty();
  const Cluster cluster =
      is_named ? library.hardware().cluster(placement.cluster) : usual_cluster(library.hardware(), *node);
  traffic.link = cluster.fabric.technology;
  if (!is_named) {
    const std::string apart = is_mixed(prompts, decodes)
                                  ? std::string("the pools have different GPUs")
                                  : fmt::format("the {} GPUs of both pools do not fit into one node of {} GPUs",
                                                devices_of(prompts) + devices_of(decodes), node->device_count);
    link.note = fmt::format(
        "KV caches move between nodes, because {}. No cluster was given, so foretoken assumes {} ({}, {} per GPU). "
        "Give {{cluster}} or {{kv_transfer_bandwidth}} to change this.",
        apart, cluster.name, traffic.link, rate_words(bandwidth));
  }
  return link;
}

Disaggregation disaggregation_of(const EnginePoolSize& prefill, const EnginePoolSize& decode, std::string_view engine,
                                 const KvTransfer& transfer,
                                 const std::function<std::optional<Node>(const Device&)>& node) {
  const auto bandwidth_of = [&](const Device& device) {
    if (transfer.device_bandwidth) return *transfer.device_bandwidth;
    if (const std::optional<Node> around = node ? node(device) : std::nullopt) {
      return rate_out(*around, prefill, decode);
    }
    throw InputError({.field = "kv_transfer_bandwidth",
                      .expected = fmt::format(
                          "the outgoing bandwidth of each device in GB/s, because the node that holds {} is not known",
                          device.name)});
  };
  const auto kv_pool = [&](const EnginePoolSize& pool) {
    return KvPool{.replicas = pool.replicas,
                  .devices = pool.engine.cache_devices(),
                  .device_bandwidth = bandwidth_of(device_of(pool))};
  };
  Disaggregation result = disaggregation_between(kv_pool(prefill), kv_pool(decode), transfer.latency);
  result.decode_router = transfer.decode_router;
  const ReplicaGroup& decodes = decode.engine;
  result.kv_bytes_per_token = kv_bytes_per_token(decodes.model, decodes.kv_dtype).value();
  result.first_token = transfer.first_token.value_or(usual_first_token(engine));
  result.first_token_doubt = engine_kind(engine).doubt_of_pools;
  result.overlapped_layers = transfer.by_layer ? static_cast<int64_t>(decodes.model.layers.size()) : 0;
  return result;
}

}  // namespace foretoken
