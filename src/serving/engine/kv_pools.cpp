#include "serving/engine/kv_pools.h"

#include <fmt/format.h>

#include "base/error.h"
#include "model/weights.h"
#include "serving/engine/engine_setup.h"

namespace foretoken {

Disaggregation disaggregation_of(const ReplicaGroup& prefill, const ReplicaGroup& decode, std::string_view engine,
                                 const KvTransfer& transfer,
                                 const std::function<std::optional<Node>(const Device&)>& node) {
  int64_t devices = 0;
  for (const ReplicaGroup* pool : {&prefill, &decode}) {
    devices += pool->count * (pool->cache_devices() + (pool->ffn ? pool->ffn->devices : 0));
  }
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
  result.overlapped_layers = transfer.by_layer ? static_cast<int64_t>(decode.model.layers.size()) : 0;
  return result;
}

}  // namespace foretoken
