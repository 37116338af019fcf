#include "app/cli/flags/pool_flags.h"

#include "base/error.h"
#include "serving/scheduling/router.h"

namespace foretoken {

void PoolFlags::declare(Options& options) {
  options.heading("Separate prefill and decode pools");
  options.settings("--prefill-pool", prefill,
                   "Workers that run prefill: flags without dashes as in --replica, for example count=2,tp=4");
  options.settings("--decode-pool", decode, "Workers that run decode, in the same form as --prefill-pool");
  options.choice("--decode-router", decode_router, router_names(), "How a decode worker is chosen after prefill");
  options.number("--kv-transfer-bandwidth", bandwidth_gb_s, {.least = 0, .most = 1e6},
                 "KV transfer bandwidth out of each GPU in one direction, in GB/s; 0 = the node's fabric if both pools "
                 "fit in one node, otherwise its network cards");
  options.number("--kv-transfer-latency", latency_us, {.least = 0, .most = 1e9},
                 "Time to set up a KV transfer, in microseconds");
  options.flag("--kv-transfer-by-layer", by_layer, "Send the KV cache of each layer as soon as it is computed");
  options.choice("--first-token", first_token, {"engine", "decode", "transfer"},
                 "Where decoding gets the first output token: decode = recomputed by the decode worker (vLLM); "
                 "transfer = sent with the KV cache (other engines); engine = as the engine does");
}

void PoolFlags::check_use(const Options& options) const {
  if (given()) return;
  options.refuse_without("--prefill-pool", {"--decode-router", "--kv-transfer-bandwidth", "--kv-transfer-latency",
                                            "--kv-transfer-by-layer", "--first-token"});
}

bool PoolFlags::given() const {
  if (prefill.empty() != decode.empty()) {
    throw InputError({.source = prefill.empty() ? "--prefill-pool" : "--decode-pool",
                      .expected = "both pools or neither (count=1 keeps the settings of the other flags)"});
  }
  return !prefill.empty();
}

KvTransfer PoolFlags::transfer() const {
  KvTransfer result{.decode_router = decode_router, .latency = Seconds(latency_us * 1e-6), .by_layer = by_layer};
  if (bandwidth_gb_s > 0) result.device_bandwidth = BytesPerSecond(bandwidth_gb_s * 1e9);
  if (first_token != "engine") {
    result.first_token = first_token == "transfer" ? FirstToken::transfer : FirstToken::decode;
  }
  return result;
}

Disaggregation PoolFlags::disaggregation(const ReplicaGroup& prefill_pool, const ReplicaGroup& decode_pool,
                                         const std::string& engine, const PlacementSpec& placement,
                                         const Library& library) const {
  return disaggregation_of({prefill_pool, prefill_pool.count}, {decode_pool, decode_pool.count}, engine, transfer(),
                           [&](const Device& device) { return library.node_of(device, placement); });
}

}  // namespace foretoken
