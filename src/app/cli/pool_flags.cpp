#include "app/cli/pool_flags.h"

#include "base/error.h"
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

Disaggregation PoolFlags::disaggregation(const ReplicaGroup& prefill_pool, const ReplicaGroup& decode_pool,
                                         const std::string& engine, const PlacementSpec& placement,
                                         const Library& library) const {
  KvTransfer transfer{.decode_router = decode_router, .latency = Seconds(latency_us * 1e-6), .by_layer = by_layer};
  if (bandwidth_gb_s > 0) transfer.device_bandwidth = BytesPerSecond(bandwidth_gb_s * 1e9);
  if (first_token != "engine") {
    transfer.first_token = first_token == "transfer" ? FirstToken::transfer : FirstToken::decode;
  }
  return disaggregation_of(prefill_pool, decode_pool, engine, transfer,
                           [&](const Device& device) { return library.node_of(device, placement); });
}

}  // namespace foretoken
