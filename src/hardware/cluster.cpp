#include "hardware/cluster.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/error.h"

namespace foretoken {
namespace {

int card_count(const Cluster& cluster) {
  ensure(cluster.node.network_cards.has_value(), "a cluster's node has network cards");
  return cluster.node.network_cards->count.value;
}

int64_t rail_of(const Cluster& cluster, int64_t device) {
  const int64_t local = device % devices_per_node(cluster);
  return local * card_count(cluster) / devices_per_node(cluster);
}

void check_device(const Cluster& cluster, int64_t device) {
  ensure(device >= 0 && device < total_devices(cluster), "a device number lies inside its cluster");
}

}  // namespace

std::string_view cluster_fabric_name(ClusterFabricKind kind) {
  return cluster_fabric_names[static_cast<size_t>(kind)];
}

Cluster cluster_with_nodes(Cluster cluster, int node_count) {
  if (node_count < 1 || node_count > most_nodes) {
    throw InputError({.source = cluster.name,
                      .path = "node_count",
                      .value = fmt::format("{}", node_count),
                      .expected = fmt::format("between 1 and {} nodes", most_nodes)});
  }
  cluster.node_count = node_count;
  return cluster;
}

int devices_per_node(const Cluster& cluster) {
  return cluster.node.device_count;
}

int64_t total_devices(const Cluster& cluster) {
  return int64_t{cluster.node_count} * devices_per_node(cluster);
}

int64_t node_of(const Cluster& cluster, int64_t device) {
  check_device(cluster, device);
  return device / devices_per_node(cluster);
}

bool same_node(const Cluster& cluster, int64_t first, int64_t second) {
  return node_of(cluster, first) == node_of(cluster, second);
}

bool same_leaf(const Cluster& cluster, int64_t first, int64_t second) {
  const int nodes_per_leaf = cluster.fabric.nodes_per_leaf.value;
  if (node_of(cluster, first) / nodes_per_leaf != node_of(cluster, second) / nodes_per_leaf) return false;
  return cluster.fabric.kind == ClusterFabricKind::fat_tree || rail_of(cluster, first) == rail_of(cluster, second);
}

BytesPerSecond card_bandwidth(const Cluster& cluster) {
  ensure(cluster.node.network_cards.has_value(), "a cluster's node has network cards");
  return std::min(cluster.node.network_cards->bandwidth.value, cluster.fabric.nic_bandwidth.value);
}

BytesPerSecond bandwidth_between(const Cluster& cluster, int64_t first, int64_t second) {
  ensure(first != second, "bandwidth is between two different devices");
  if (same_node(cluster, first, second)) return pair_bandwidth(cluster.node);
  return card_bandwidth(cluster) * std::max(1, card_count(cluster) / devices_per_node(cluster));
}

BytesPerSecond bandwidth_within_leaf(const Cluster& cluster) {
  return card_bandwidth(cluster) * card_count(cluster) / devices_per_node(cluster);
}

BytesPerSecond bandwidth_through_spine(const Cluster& cluster) {
  return bandwidth_within_leaf(cluster) / cluster.fabric.oversubscription.value;
}

}  // namespace foretoken
