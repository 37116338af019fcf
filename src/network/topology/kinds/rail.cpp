// Nodes with a switch inside and one network card per device; card i of every node of a group on the same leaf switch.
#include "network/topology/clos.h"
#include "network/topology/kinds/list.h"

namespace foretoken {
namespace rail {
namespace {

constexpr TopologySetting settings[] = {
    {"node_bandwidth", SettingUnit::rate, "of a device inside its node; the bandwidth of a card if not given"},
    {"node_latency", SettingUnit::time, "of a link inside a node; the latency of a link if not given"},
    {"cards", SettingUnit::number, "network cards per node; one per device if not given"},
    {"oversubscription", SettingUnit::number, "bandwidth into a leaf from below over that to above; 1 if not given"},
};

NetworkGraph make(const TopologyPart& part) {
  const TopologyPart node{.text = part.text,
                          .sizes = {part.sizes[0]},
                          .bandwidth = BytesPerSecond(part.setting("node_bandwidth", part.bandwidth.value())),
                          .latency = Seconds(part.setting("node_latency", part.latency.value()))};
  const int64_t cards = whole_setting(part, "cards", part.sizes[0]);
  check_link_count(part, static_cast<double>(cards) * static_cast<double>(part.sizes[1] * part.size(2)));
  return leaf_spine_graph({.node = switch_kind().make(node),
                           .node_count = part.sizes[1] * part.size(2),
                           .cards_per_node = cards,
                           .card_bandwidth = part.bandwidth,
                           .link_latency = part.latency,
                           .nodes_per_leaf = part.sizes[1],
                           .by_rail = true,
                           .oversubscription = oversubscription_setting(part, "oversubscription")});
}

}  // namespace
}  // namespace rail

TopologyKind rail_kind() {
  return {.name = "rail",
          .sizes = "DEVICES_PER_NODE x NODES_PER_LEAF [x GROUPS]",
          .least_sizes = 2,
          .most_sizes = 3,
          .summary = "nodes with a switch inside; card i of the nodes of a group on the same leaf, leaves under spines",
          .settings = rail::settings,
          .make = rail::make};
}

}  // namespace foretoken
