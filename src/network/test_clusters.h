// Clusters for tests: round numbers, no files.
#pragma once

#include "hardware/cluster.h"

namespace foretoken {

struct TestCluster {
  int nodes = 4;
  int devices = 8;
  int cards = 8;
  int nodes_per_leaf = 2;
  ClusterFabricKind kind = ClusterFabricKind::rail_optimized;
  double oversubscription = 1;
  NodeFabricKind inside = NodeFabricKind::nvswitch;
  double card_gb_per_s = 50;
};

inline Cluster test_cluster(const TestCluster& wanted) {
  Cluster cluster{.name = "test_cluster", .node_count = wanted.nodes};
  cluster.node.name = "test_node";
  cluster.node.device.name = "test_device";
  cluster.node.device.instruction_set = "sm_90";
  cluster.node.device.link_bandwidth = Fact<BytesPerSecond>{.value = BytesPerSecond(400e9)};
  cluster.node.device_count = wanted.devices;
  cluster.node.fabric = {.kind = wanted.inside,
                         .bandwidth = {.value = BytesPerSecond(400e9)},
                         .latency = Fact<Seconds>{.value = microseconds(1)}};
  cluster.node.network_cards = NetworkCards{.count = {.value = wanted.cards},
                                            .bandwidth = {.value = BytesPerSecond(wanted.card_gb_per_s * giga)}};
  cluster.fabric = {.kind = wanted.kind,
                    .nic_bandwidth = {.value = BytesPerSecond(wanted.card_gb_per_s * giga)},
                    .oversubscription = {.value = wanted.oversubscription},
                    .nodes_per_leaf = {.value = wanted.nodes_per_leaf},
                    .latency = Fact<Seconds>{.value = microseconds(5)}};
  return cluster;
}

}  // namespace foretoken
