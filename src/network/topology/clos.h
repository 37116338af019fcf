// Levels of switches, as fat trees and leaf-spine networks stack them.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "network/topology/topology_kind.h"

namespace foretoken {

// How a switch is joined to the level above.
struct Uplinks {
  int64_t count = 1;
  BytesPerSecond bandwidth;  // of each
};

// Of a switch with `ports` links below at `bandwidth`: as many at the same bandwidth as the ratio of bandwidth below to
// above leaves, slightly slower ones where it leaves a fraction.
Uplinks uplinks_of(int64_t ports, BytesPerSecond bandwidth, double oversubscription);

// One switch per uplink, each joined to all of `below`; returns them.
std::vector<NetworkNode> add_level(NetworkGraph& graph, std::span<const NetworkNode> below, const Uplinks& up,
                                   Seconds latency);

// A ratio among a part's settings, 1 if not given; InputError below 1.
double oversubscription_setting(const TopologyPart& part, std::string_view name);

// Nodes of equal devices behind leaf and spine switches.
struct LeafSpine {
  NetworkGraph node;  // the devices of one node and what joins them inside
  int64_t node_count = 1;
  int64_t cards_per_node = 1;     // dealt to the devices evenly; several devices may share a card, or one have several
  BytesPerSecond card_bandwidth;  // of each, one direction
  Seconds link_latency;           // of a card to its leaf, and of a leaf to a spine
  int64_t nodes_per_leaf = 1;
  bool by_rail = false;  // card i of the nodes of a group on a leaf of its own, instead of all on one
  double oversubscription = 1;
  std::optional<int64_t> spines;  // as many as the uplinks need if not given
};

// Devices are numbered node by node, and only ends of traffic.
NetworkGraph leaf_spine_graph(const LeafSpine& network);

}  // namespace foretoken
