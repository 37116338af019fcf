#include "network/topology/clos.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/text.h"
#include "network/topology/product.h"

namespace foretoken {
namespace {

// Card `card` belongs to this device of the node, or to this and the next few.
int64_t first_device_of(int64_t card, int64_t cards, int64_t devices) {
  return card * devices / cards;
}

// The cards of one node whose first device is `first_device`, each joined to its devices; returns them in order.
std::vector<NetworkNode> add_cards(NetworkGraph& graph, const LeafSpine& network, int64_t first_device) {
  const int64_t devices = network.node.device_count, count = network.cards_per_node;
  std::vector<NetworkNode> cards;
  for (int64_t card = 0; card < count; ++card) {
    cards.push_back(graph.add(NetworkNodeKind::network_card));
    const int64_t first = first_device_of(card, count, devices);
    const int64_t last = std::max(first, first_device_of(card + 1, count, devices) - 1);
    for (int64_t device = first; device <= last; ++device) {
      graph.connect(static_cast<NetworkNode>(first_device + device), cards.back(), network.card_bandwidth, {});
    }
  }
  return cards;
}

}  // namespace

Uplinks uplinks_of(int64_t ports, BytesPerSecond bandwidth, double oversubscription) {
  const double total = static_cast<double>(ports) / oversubscription;
  const auto count = static_cast<int64_t>(std::ceil(total));
  return {.count = count, .bandwidth = bandwidth * (total / static_cast<double>(count))};
}

std::vector<NetworkNode> add_level(NetworkGraph& graph, std::span<const NetworkNode> below, const Uplinks& up,
                                   Seconds latency) {
  std::vector<NetworkNode> above;
  for (int64_t i = 0; i < up.count; ++i) {
    above.push_back(graph.add(NetworkNodeKind::network_switch));
    for (const NetworkNode lower : below) graph.connect(lower, above.back(), up.bandwidth, latency);
  }
  return above;
}

double oversubscription_setting(const TopologyPart& part, std::string_view name) {
  const double value = part.setting(name, 1);
  if (value >= 1 && value <= 1000) return value;
  throw InputError({.source = "topology",
                    .path = part.text + ", " + std::string(name),
                    .value = number_text(value),
                    .expected = "a ratio between 1 and 1000, bandwidth below over bandwidth above"});
}

NetworkGraph leaf_spine_graph(const LeafSpine& network) {
  NetworkGraph graph = copies_of(network.node, network.node_count);
  graph.devices_forward = false;
  const int64_t rails = network.by_rail ? network.cards_per_node : 1;
  std::vector<NetworkNode> leaves;
  for (int64_t node = 0; node < network.node_count; ++node) {
    if (node % network.nodes_per_leaf == 0) {
      for (int64_t rail = 0; rail < rails; ++rail) leaves.push_back(graph.add(NetworkNodeKind::network_switch));
    }
    const auto group = std::span(leaves).last(static_cast<size_t>(rails));
    const std::vector<NetworkNode> cards = add_cards(graph, network, node * network.node.device_count);
    for (size_t card = 0; card < cards.size(); ++card) {
      graph.connect(cards[card], group[card % group.size()], network.card_bandwidth, network.link_latency);
    }
  }
  if (leaves.size() == 1) return graph;
  const int64_t ports = network.nodes_per_leaf * network.cards_per_node / rails;
  Uplinks up = uplinks_of(ports, network.card_bandwidth, network.oversubscription);
  if (network.spines) {
    up.bandwidth = up.bandwidth * (static_cast<double>(up.count) / static_cast<double>(*network.spines));
    up.count = *network.spines;
  }
  add_level(graph, leaves, up, network.link_latency);
  return graph;
}

}  // namespace foretoken
