// A node: devices of one kind that share a fast fabric, their host, and the cards that lead out.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.h"
#include "hardware/device.h"

namespace foretoken {

// nvswitch: any pair at full rate. nvlink_mesh, xgmi: the links of a device are shared out evenly over the others, so a
// pair gets 1/(n-1) of the rate. pcie: through PCIe switches or the host. grid, torus: links to neighbors alone; the
// rows of a torus close on themselves.
enum class NodeFabricKind { nvswitch, nvlink_mesh, xgmi, pcie, grid, torus };
inline constexpr std::string_view node_fabric_names[] = {"nvswitch", "nvlink_mesh", "xgmi", "pcie", "grid", "torus"};
std::string_view node_fabric_name(NodeFabricKind kind);

struct NodeFabric {
  NodeFabricKind kind = NodeFabricKind::nvswitch;
  Fact<BytesPerSecond> bandwidth;  // out of each device, all its links, one direction; grid: of a corner
  MaybeFact<Seconds> latency;      // of the smallest message between two devices
  std::vector<int> sides;          // grid, torus alone: devices along each dimension
  // As collectives of this very host reach them, where somebody gave them: rings of its devices then run at these.
  MaybeFact<BytesPerSecond> ring_bandwidth;
  MaybeFact<Seconds> ring_latency;
  // pcie alone:
  MaybeFact<bool> peer_access;       // devices write to each other, not through the host's memory
  MaybeFact<BytesPerSecond> bridge;  // NVLink between devices 2i and 2i+1, one direction
  bool is_swept = false;             // data/networks has sweeps of its device that were taken in this very box
};

// grid and torus: what is meant for others is passed on.
bool has_neighbors_alone(const NodeFabric& fabric);

struct NodeHost {
  Device cpu;
  int count = 1;
  std::string source;
};

struct NetworkCards {
  Fact<int> count;
  Fact<BytesPerSecond> bandwidth;  // of each, one direction
};

struct Node {
  std::string name;
  std::string title;
  std::vector<std::string> aliases;
  std::string note;
  Device device;
  int device_count = 1;
  MaybeFact<int> host_devices;  // of one host, where the fabric joins several hosts; nothing = all have one host
  NodeFabric fabric;
  std::optional<NodeHost> host;
  std::optional<NetworkCards> network_cards;
  MaybeFact<Watts> power_limit;  // of the whole node
};

// One direction between two devices of the node while nothing else moves; between neighbors of a grid.
BytesPerSecond pair_bandwidth(const Node& node);

// One direction out of the node for each device when all send at once; nothing if the node's cards are not known.
std::optional<BytesPerSecond> network_bandwidth_per_device(const Node& node);

}  // namespace foretoken
