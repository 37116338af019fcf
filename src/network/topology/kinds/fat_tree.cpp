// Folded Clos networks of two and three levels.
#include "network/topology/clos.h"
#include "network/topology/kinds/list.h"

namespace foretoken {
namespace fat_tree {
namespace {

constexpr TopologySetting settings[] = {
    {"oversubscription", SettingUnit::number, "bandwidth into a leaf from below over that to above; 1 if not given"},
    {"core_oversubscription", SettingUnit::number, "the same of the second level of three; 1 if not given"},
};

NetworkGraph make(const TopologyPart& part) {
  const int64_t per_leaf = part.sizes[0], leaves_per_pod = part.sizes[1], pods = part.size(2);
  const Uplinks leaf_up = uplinks_of(per_leaf, part.bandwidth, oversubscription_setting(part, "oversubscription"));
  const Uplinks core_up =
      uplinks_of(leaves_per_pod, leaf_up.bandwidth, oversubscription_setting(part, "core_oversubscription"));

  NetworkGraph graph{.device_count = per_leaf * leaves_per_pod * pods, .devices_forward = false};
  std::vector<std::vector<NetworkNode>> planes(static_cast<size_t>(leaf_up.count));  // switch i of every pod
  NetworkNode device = 0;
  for (int64_t pod = 0; pod < pods; ++pod) {
    std::vector<NetworkNode> leaves;
    for (int64_t i = 0; i < leaves_per_pod; ++i) {
      leaves.push_back(graph.add(NetworkNodeKind::network_switch));
      for (int64_t port = 0; port < per_leaf; ++port) {
        graph.connect(device++, leaves.back(), part.bandwidth, part.latency);
      }
    }
    const std::vector<NetworkNode> spines = add_level(graph, leaves, leaf_up, part.latency);
    for (size_t plane = 0; plane < planes.size(); ++plane) planes[plane].push_back(spines[plane]);
  }
  if (pods == 1) return graph;
  for (const std::vector<NetworkNode>& plane : planes) add_level(graph, plane, core_up, part.latency);
  return graph;
}

}  // namespace
}  // namespace fat_tree

TopologyKind fat_tree_kind() {
  return {.name = "fat_tree",
          .sizes = "DEVICES_PER_LEAF x LEAVES [x PODS]",
          .least_sizes = 2,
          .most_sizes = 3,
          .summary = "two levels of switches, or three: pods of leaves under planes of core switches",
          .settings = fat_tree::settings,
          .make = fat_tree::make};
}

}  // namespace foretoken
