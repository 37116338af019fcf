// Devices, switches and the links between them: a directed graph.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.h"

namespace foretoken {

using NetworkNode = int32_t;  // devices come first: node i is device (rank) i for i < device_count
using LinkIndex = int32_t;

enum class NetworkNodeKind : uint8_t { device, network_card, network_switch, host };
inline constexpr std::string_view network_node_kind_names[] = {"device", "card", "switch", "host"};

// One direction of a cable. Two directions are two links, and may differ.
struct Link {
  NetworkNode from = 0;
  NetworkNode to = 0;
  BytesPerSecond bandwidth;
  Seconds latency;
};

// What a topology is made of: the form in which builders write one and changes are made to it.
struct NetworkGraph {
  int64_t device_count = 0;
  std::vector<NetworkNodeKind> others;  // what the nodes after the devices are
  std::vector<Link> links;
  // Whether traffic may pass through a device on its way to another, as on a torus; false where devices are only ends.
  bool devices_forward = true;
  std::vector<std::string> names;  // of all nodes; empty: named by kind and number

  NetworkNode add(NetworkNodeKind kind);
  void connect(NetworkNode a, NetworkNode b, BytesPerSecond bandwidth, Seconds latency);  // both directions
};

// Built once, then only read. Memory is linear in nodes and links.
class Topology {
 public:
  // InputError for no devices, or a link that names no node, leads to itself, or has no bandwidth.
  explicit Topology(NetworkGraph graph);

  int64_t device_count() const { return graph_.device_count; }
  int64_t node_count() const { return static_cast<int64_t>(first_out_.size()) - 1; }
  std::span<const Link> links() const { return graph_.links; }
  const Link& link(LinkIndex index) const { return graph_.links[static_cast<size_t>(index)]; }
  const NetworkGraph& graph() const { return graph_; }

  NetworkNodeKind kind(NetworkNode node) const;
  std::string name(NetworkNode node) const;  // as given, or "switch 12": kind and node number
  bool forwards(NetworkNode node) const { return graph_.devices_forward || node >= graph_.device_count; }

  // In the order the links were given.
  std::span<const LinkIndex> links_out_of(NetworkNode node) const;
  std::span<const LinkIndex> links_into(NetworkNode node) const;

 private:
  NetworkGraph graph_;
  std::vector<int32_t> first_out_, first_in_;
  std::vector<LinkIndex> out_, in_;
};

}  // namespace foretoken
