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

BytesPerSecond card_bandwidth(const Cluster& cluster) {
  ensure(cluster.node.network_cards.has_value(), "a cluster's node has network cards");
  return std::min(cluster.node.network_cards->bandwidth.value, cluster.fabric.nic_bandwidth.value);
}

BytesPerSecond bandwidth_within_leaf(const Cluster& cluster) {
  return card_bandwidth(cluster) * card_count(cluster) / devices_per_node(cluster);
}

}  // namespace foretoken
