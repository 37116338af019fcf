#include "hardware/node.h"

#include <algorithm>

namespace foretoken {

std::string_view node_fabric_name(NodeFabricKind kind) {
  return node_fabric_names[static_cast<size_t>(kind)];
}

namespace {

// Of the device that has the fewest: two neighbors along a dimension that closes on itself, else one.
int links_of_corner(const NodeFabric& fabric) {
  int links = 0;
  for (const int side : fabric.sides) {
    if (side > 1) links += fabric.kind == NodeFabricKind::torus && side > 2 ? 2 : 1;
  }
  return std::max(links, 1);
}

}  // namespace

bool has_neighbors_alone(const NodeFabric& fabric) {
  return fabric.kind == NodeFabricKind::grid || fabric.kind == NodeFabricKind::torus;
}

BytesPerSecond pair_bandwidth(const Node& node) {
  if (has_neighbors_alone(node.fabric)) return node.fabric.bandwidth.value / links_of_corner(node.fabric);
  const bool shared_out = node.fabric.kind == NodeFabricKind::nvlink_mesh || node.fabric.kind == NodeFabricKind::xgmi;
  if (!shared_out || node.device_count < 3) return node.fabric.bandwidth.value;
  return node.fabric.bandwidth.value / (node.device_count - 1);
}

std::optional<BytesPerSecond> network_bandwidth_per_device(const Node& node) {
  if (!node.network_cards) return std::nullopt;
  return node.network_cards->bandwidth.value * node.network_cards->count.value / node.device_count;
}

}  // namespace foretoken
