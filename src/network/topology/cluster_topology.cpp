#include "network/topology/cluster_topology.h"

#include <algorithm>

#include "base/error.h"
#include "network/topology/clos.h"
#include "network/topology/topology_kind.h"

namespace foretoken {
namespace {

// Over two links the latency is shared by them.
TopologyPart part_of(const Node& node, int links_between_devices) {
  const Seconds latency = node.fabric.latency ? node.fabric.latency->value : Seconds(0);
  return {.text = node.name,
          .sizes = has_neighbors_alone(node.fabric)
                       ? std::vector<int64_t>(node.fabric.sides.begin(), node.fabric.sides.end())
                       : std::vector<int64_t>{node.device_count},
          .bandwidth = pair_bandwidth(node),
          .latency = latency / links_between_devices};
}

// Devices of one processor meet in its host bridge; the last processor has fewer where they cannot be shared evenly.
NetworkGraph pcie_graph(const Node& node) {
  const TopologyPart part = part_of(node, 2);
  const int processors = std::min(node.host ? node.host->count : 1, node.device_count);
  const int per_processor = (node.device_count + processors - 1) / processors;
  NetworkGraph graph{.device_count = node.device_count, .devices_forward = false};
  std::vector<NetworkNode> bridges;
  for (NetworkNode device = 0; device < node.device_count; ++device) {
    if (device % per_processor == 0) {
      const NetworkNode bridge = graph.add(NetworkNodeKind::host);
      for (const NetworkNode other : bridges) graph.connect(other, bridge, part.bandwidth, part.latency);
      bridges.push_back(bridge);
    }
    graph.connect(device, bridges.back(), part.bandwidth, part.latency);
  }
  return graph;
}

NetworkGraph node_graph(const Node& node) {
  switch (node.fabric.kind) {
    case NodeFabricKind::nvswitch:
      return topology_kind("switch").make(part_of(node, 2));
    case NodeFabricKind::nvlink_mesh:
    case NodeFabricKind::xgmi:
      return topology_kind("fully_connected").make(part_of(node, 1));
    case NodeFabricKind::grid:
      return topology_kind("mesh").make(part_of(node, 1));
    case NodeFabricKind::torus:
      return topology_kind("torus").make(part_of(node, 1));
    case NodeFabricKind::pcie:
      return pcie_graph(node);
  }
  ensure(false, "every kind of node fabric has a graph");
  return {};
}

}  // namespace

Topology topology_of(const Node& node) {
  return Topology(node_graph(node));
}

Topology topology_of(const Cluster& cluster) {
  ensure(cluster.node.network_cards.has_value(), "a cluster's node has network cards");
  const ClusterFabric& fabric = cluster.fabric;
  LeafSpine network{.node = node_graph(cluster.node),
                    .node_count = cluster.node_count,
                    .cards_per_node = cluster.node.network_cards->count.value,
                    .card_bandwidth = card_bandwidth(cluster),
                    .link_latency = (fabric.latency ? fabric.latency->value : Seconds(0)) / 2,
                    .nodes_per_leaf = fabric.nodes_per_leaf.value,
                    .by_rail = fabric.kind == ClusterFabricKind::rail_optimized,
                    .oversubscription = fabric.oversubscription.value};
  if (fabric.spine_switches) network.spines = fabric.spine_switches->value;
  return Topology(leaf_spine_graph(network));
}

}  // namespace foretoken
