#include "serving/disaggregation.h"

namespace foretoken {

std::optional<BytesPerSecond> transfer_bandwidth_per_device(const Node& node, int64_t devices) {
  return devices <= node.device_count ? pair_bandwidth(node) : network_bandwidth_per_device(node);
}

}  // namespace foretoken
