#include "serving/simulation/disaggregation.h"

namespace foretoken {

std::optional<BytesPerSecond> transfer_bandwidth_per_device(const Node& node, int64_t devices) {
  return devices <= node.device_count ? pair_bandwidth(node) : network_bandwidth_per_device(node);
}

Disaggregation disaggregation_between(const KvPool& prefill, const KvPool& decode, Seconds latency) {
  Disaggregation result{.prefill_replicas = static_cast<size_t>(prefill.replicas), .ports = {}};
  for (const KvPool* pool : {&prefill, &decode}) {
    const KvPort port{.bandwidth = BytesPerSecond(pool->device_bandwidth.value() * static_cast<double>(pool->devices)),
                      .latency = latency};
    result.ports.insert(result.ports.end(), static_cast<size_t>(pool->replicas), port);
  }
  return result;
}

}  // namespace foretoken
