#include "serving/engine/kv_pools.h"

#include <fmt/format.h>

#include "base/error.h"
#include "hardware/usual_cluster.h"
#include "library/library.h"
#include "model/weights.h"
#include "serving/engine/engine_setup.h"

namespace foretoken {
namespace {

int64_t devices_of_pools(const ReplicaGroup& prefill, const ReplicaGroup& decode) {
  int64_t devices = 0;
  for (const ReplicaGroup* pool : {&prefill, &decode}) {
    devices += pool->count * (pool->cache_devices() + (pool->ffn ? pool->ffn->devices : 0));
  }
  return devices;
}

}  // namespace

std::optional<KvLink> kv_link(const ReplicaGroup& prefill, const ReplicaGroup& decode, const KvTransfer& transfer,
                              const PlacementSpec& placement, const Library& library) {
  const Device& device = prefill.models.kernels.device();
  const int64_t devices = devices_of_pools(prefill, decode);
  const std::optional<Node> node = library.node_of(device, placement);
  KvLink link{.traffic = {.bytes = kv_bytes_per_token(decode.model, decode.kv_dtype).value() /
                                   static_cast<double>(prefill.cache_devices())},
              .note = {}};
  LinkTraffic& traffic = link.traffic;
  traffic.between_nodes = !node || devices > node->device_count;
  if (transfer.device_bandwidth) {
    traffic.link = "a link of the bandwidth that was given";
    traffic.bandwidth = transfer.device_bandwidth->value();
    return link;
  }
  const auto bandwidth = node ? transfer_bandwidth_per_device(*node, devices) : std::nullopt;
  if (!bandwidth) return std::nullopt;
  traffic.bandwidth = bandwidth->value();
  if (!traffic.between_nodes) {
    traffic.link = node->fabric.kind == NodeFabricKind::pcie ? "PCIe" : "the links inside the node";
    return link;
  }
  const bool is_named = !placement.cluster.empty();
  const Cluster cluster =
      is_named ? library.hardware().cluster(placement.cluster) : usual_cluster(library.hardware(), *node);
  traffic.link = cluster.fabric.technology;
  if (!is_named) {
    link.note = fmt::format(
        "KV caches move between nodes: the {} GPUs of both pools do not fit into one node of {}. No cluster was given, "
        "so foretoken assumes {} ({}, {} a GPU). Give {{cluster}} or {{kv_transfer_bandwidth}} to change this.",
        devices, node->device_count, cluster.name, traffic.link, rate_words(*bandwidth));
  }
  return link;
}

Disaggregation disaggregation_of(const ReplicaGroup& prefill, const ReplicaGroup& decode, std::string_view engine,
                                 const KvTransfer& transfer,
                                 const std::function<std::optional<Node>(const Device&)>& node) {
  const int64_t devices = devices_of_pools(prefill, decode);
  const auto bandwidth_of = [&](const Device& device) {
    if (transfer.device_bandwidth) return *transfer.device_bandwidth;
    const std::optional<Node> around = node ? node(device) : std::nullopt;
    const auto known = around ? transfer_bandwidth_per_device(*around, devices) : std::nullopt;
    if (known) return *known;
    throw InputError(
        {.field = "kv_transfer_bandwidth",
         .expected = fmt::format("the bandwidth in GB/s out of each device, because the network of {} is not known",
                                 device.name)});
  };
  const auto kv_pool = [&](const ReplicaGroup& pool) {
    return KvPool{.replicas = pool.count,
                  .devices = pool.cache_devices(),
                  .device_bandwidth = bandwidth_of(pool.models.kernels.device())};
  };
  Disaggregation result = disaggregation_between(kv_pool(prefill), kv_pool(decode), transfer.latency);
  result.decode_router = transfer.decode_router;
  result.kv_bytes_per_token = kv_bytes_per_token(decode.model, decode.kv_dtype).value();
  result.first_token = transfer.first_token.value_or(usual_first_token(engine));
  result.first_token_doubt = engine_kind(engine).doubt_of_pools;
  result.overlapped_layers = transfer.by_layer ? static_cast<int64_t>(decode.model.layers.size()) : 0;
  return result;
}

}  // namespace foretoken
