#include "app/cli/pool_flags.h"

#include <fmt/format.h>

#include "base/error.h"
#include "model/weights.h"
#include "serving/engine/engine_setup.h"
#include "serving/scheduling/router.h"

namespace foretoken {

void PoolFlags::declare(Options& options) {
  options.heading("Separate prefill and decode workers");
  options.settings("--prefill-pool", prefill,
                   "Workers that compute prompts: flags without their dashes, as in --replica: count=2,tp=4");
  options.settings("--decode-pool", decode, "The same for the workers that decode");
  options.choice("--decode-router", decode_router, router_names(), "Which decode worker a computed prompt goes to");
  options.number("--kv-transfer-bandwidth", bandwidth_gb_s, {.least = 0, .most = 1e6},
                 "GB/s out of each device, one direction; 0 = the node's fabric where both pools fit in one node, else "
                 "its network cards");
  options.number("--kv-transfer-latency", latency_us, {.least = 0, .most = 1e9}, "Microseconds to set up a transfer");
  options.flag("--kv-transfer-by-layer", by_layer, "Send the cache of each layer as soon as it is computed");
  options.choice("--first-token", first_token, {"engine", "decode", "transfer"},
                 "decode = the decode worker computes it again (vLLM), transfer = it comes with the cache (others)");
}

bool PoolFlags::given() const {
  if (prefill.empty() != decode.empty()) {
    throw InputError({.source = prefill.empty() ? "--prefill-pool" : "--decode-pool",
                      .expected = "both pools, or none; count=1 has the settings of the other flags"});
  }
  return !prefill.empty();
}

BytesPerSecond PoolFlags::device_bandwidth(const Device& device, int64_t all_devices, const Library& library) const {
  if (bandwidth_gb_s > 0) return BytesPerSecond(bandwidth_gb_s * 1e9);
  if (const std::optional<Node> node = library.hardware().node_with(device)) {
    if (const auto bandwidth = transfer_bandwidth_per_device(*node, all_devices)) return *bandwidth;
  }
  throw InputError({.source = "--kv-transfer-bandwidth",
                    .expected = fmt::format("GB/s out of each device: the network of {} is not known", device.name)});
}

Disaggregation PoolFlags::disaggregation(const ReplicaGroup& prefill_pool, const ReplicaGroup& decode_pool,
                                         const std::string& engine, const Library& library) const {
  const FirstToken chosen = first_token == "transfer" ? FirstToken::transfer : FirstToken::decode;
  int64_t devices = 0;
  for (const ReplicaGroup* pool : {&prefill_pool, &decode_pool})
    devices += pool->count * summary_of(*pool).devices_each;
  const auto kv_pool = [&](const ReplicaGroup& pool) {
    return KvPool{.replicas = pool.count,
                  .devices = pool.cache_devices(),
                  .device_bandwidth = device_bandwidth(pool.models.kernels.device(), devices, library)};
  };
  Disaggregation result =
      disaggregation_between(kv_pool(prefill_pool), kv_pool(decode_pool), Seconds(latency_us * 1e-6));
  const Model& model = decode_pool.model;
  result.decode_router = decode_router;
  result.kv_bytes_per_token = kv_bytes_per_token(model, decode_pool.kv_dtype).value();
  result.first_token = first_token == "engine" ? usual_first_token(engine) : chosen;
  result.overlapped_layers = by_layer ? static_cast<int64_t>(model.layers.size()) : 0;
  return result;
}

}  // namespace foretoken
