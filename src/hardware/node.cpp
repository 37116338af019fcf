#include "hardware/node.h"

namespace foretoken {

std::string_view node_fabric_name(NodeFabricKind kind) {
  return node_fabric_names[static_cast<size_t>(kind)];
}

BytesPerSecond pair_bandwidth(const Node& node) {
  const bool shared_out = node.fabric.kind == NodeFabricKind::nvlink_mesh || node.fabric.kind == NodeFabricKind::xgmi;
  if (!shared_out || node.device_count < 3) return node.fabric.bandwidth.value;
  return node.fabric.bandwidth.value / (node.device_count - 1);
}

std::optional<BytesPerSecond> network_bandwidth_per_device(const Node& node) {
  if (!node.network_cards) return std::nullopt;
  return node.network_cards->bandwidth.value * node.network_cards->count.value / node.device_count;
}

}  // namespace foretoken
