#include "network/topology/cluster_topology.h"

#include <gtest/gtest.h>

#include "hardware/catalogue.h"
#include "network/topology/router.h"

namespace foretoken::cluster_topology_test {

class ClusterTopology : public testing::Test {
 protected:
  const HardwareCatalogue catalogue{FORETOKEN_SOURCE_DIR "/data/hardware"};
};

BytesPerSecond bottleneck(const Topology& topology, NetworkNode from, NetworkNode to) {
  std::vector<RouteLink> route;
  Router(topology, LinkRouting::shortest).route(from, to, 0, route);
  BytesPerSecond least(1e30);
  for (const RouteLink& step : route) least = std::min(least, topology.link(step.link).bandwidth);
  return least;
}

int64_t rail_of(const Cluster& cluster, int64_t device) {
  return device % devices_per_node(cluster) * cluster.node.network_cards->count.value / devices_per_node(cluster);
}

// Whether two devices of different nodes reach each other through one leaf switch.
bool same_leaf(const Cluster& cluster, int64_t first, int64_t second) {
  const int64_t nodes = cluster.fabric.nodes_per_leaf.value;
  if (node_of(cluster, first) / nodes != node_of(cluster, second) / nodes) return false;
  return cluster.fabric.kind == ClusterFabricKind::fat_tree || rail_of(cluster, first) == rail_of(cluster, second);
}

// While nothing else moves: the node's fabric, or the cards of one device, at least a whole one.
BytesPerSecond bandwidth_between(const Cluster& cluster, int64_t first, int64_t second) {
  if (same_node(cluster, first, second)) return pair_bandwidth(cluster.node);
  return card_bandwidth(cluster) * std::max(1, cluster.node.network_cards->count.value / devices_per_node(cluster));
}

TEST_F(ClusterTopology, every_node_in_the_library_gives_its_pairs_the_bandwidth_of_its_sheet) {
  for (const std::string& name : catalogue.node_names()) {
    const Node node = catalogue.node(name);
    const Topology topology = topology_of(node);
    ASSERT_EQ(topology.device_count(), node.device_count) << name;
    for (NetworkNode to = 1; to < node.device_count; ++to) {
      EXPECT_EQ(bottleneck(topology, 0, to), pair_bandwidth(node)) << name << " to " << to;
    }
  }
}

TEST_F(ClusterTopology, every_cluster_in_the_library_gives_pairs_in_a_leaf_the_bandwidth_of_its_sheet) {
  for (const std::string& name : catalogue.cluster_names()) {
    const Cluster cluster = catalogue.cluster(name);
    const Topology topology = topology_of(cluster);
    ASSERT_EQ(topology.device_count(), total_devices(cluster)) << name;
    for (NetworkNode to = 1; to < topology.device_count(); to += 3) {
      if (!same_node(cluster, 0, to) && !same_leaf(cluster, 0, to)) continue;
      EXPECT_EQ(bottleneck(topology, 0, to), bandwidth_between(cluster, 0, to)) << name << " to " << to;
    }
  }
}

TEST_F(ClusterTopology, pairs_meet_in_the_node_the_leaf_or_a_spine) {
  for (const std::string& name : catalogue.cluster_names()) {
    const Cluster cluster = catalogue.cluster(name);
    const Topology topology = topology_of(cluster);
    Router router(topology, LinkRouting::shortest);
    // Infinity Fabric joins each pair of a node by a link of its own.
    const int64_t inside = cluster.node.fabric.kind == NodeFabricKind::xgmi ? 1 : 2;
    for (NetworkNode to = 1; to < topology.device_count(); ++to) {
      const int64_t expected = same_node(cluster, 0, to) ? inside : same_leaf(cluster, 0, to) ? 4 : 6;
      EXPECT_EQ(router.distance(0, to), expected) << name << " to " << to;
    }
  }
}

TEST_F(ClusterTopology, leaves_have_as_much_bandwidth_up_as_down_over_the_oversubscription) {
  for (const std::string& name : catalogue.cluster_names()) {
    // Leaves that are full.
    Cluster cluster = catalogue.cluster(name);
    cluster = cluster_with_nodes(cluster, 2 * cluster.fabric.nodes_per_leaf.value);
    const Topology topology = topology_of(cluster);
    double from_cards = 0, from_leaves = 0;
    for (const Link& link : topology.links()) {
      if (topology.kind(link.to) != NetworkNodeKind::network_switch) continue;
      if (topology.kind(link.from) == NetworkNodeKind::network_card) from_cards += link.bandwidth.value();
      if (topology.kind(link.from) == NetworkNodeKind::network_switch) from_leaves += link.bandwidth.value() / 2;
    }
    EXPECT_NEAR(from_leaves * cluster.fabric.oversubscription.value / from_cards, 1, 1e-12) << name;
  }
}

}  // namespace foretoken::cluster_topology_test
