// A cluster: equal nodes behind leaf and spine switches. Devices are numbered node by node.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/units.h"
#include "hardware/node.h"

namespace foretoken {

// rail_optimized: card i of every node in a group hangs off the same leaf switch. fat_tree: all cards of a node do.
enum class ClusterFabricKind { rail_optimized, fat_tree };
inline constexpr std::string_view cluster_fabric_names[] = {"rail_optimized", "fat_tree"};
std::string_view cluster_fabric_name(ClusterFabricKind kind);

struct ClusterFabric {
  ClusterFabricKind kind = ClusterFabricKind::rail_optimized;
  std::string technology;              // InfiniBand NDR, RoCE 400 GbE
  Fact<BytesPerSecond> nic_bandwidth;  // of the port each card plugs into, one direction
  Fact<double> oversubscription;       // leaf ports down over up; 1 = full bisection
  Fact<int> nodes_per_leaf;            // nodes that share a leaf switch, or one leaf per rail
  MaybeFact<int> spine_switches;
  MaybeFact<Seconds> latency;  // of the smallest message between two nodes of a leaf
};

struct Cluster {
  std::string name;
  std::string title;
  std::vector<std::string> aliases;
  std::string note;
  Node node;  // its network cards are known
  int node_count = 1;
  ClusterFabric fabric;
  bool is_usual = true;  // may stand for nodes whose network nobody gave
};

// The same cluster with another number of nodes; InputError outside 1 to most_nodes.
inline constexpr int most_nodes = 1'000'000;
Cluster cluster_with_nodes(Cluster cluster, int node_count);

int devices_per_node(const Cluster& cluster);
int64_t total_devices(const Cluster& cluster);
int64_t node_of(const Cluster& cluster, int64_t device);
bool same_node(const Cluster& cluster, int64_t first, int64_t second);

// What one card really gets: the slower of card and port.
BytesPerSecond card_bandwidth(const Cluster& cluster);

// One direction out of the node for each device when all devices send at once, inside one leaf group.
BytesPerSecond bandwidth_within_leaf(const Cluster& cluster);

}  // namespace foretoken
