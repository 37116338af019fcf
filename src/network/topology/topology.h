// Devices, switches and the links between them: a directed graph.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/units.h"

namespace foretoken {

using NetworkNode = int32_t;  // devices come first: node i is device (rank) i for i < device_count
using LinkIndex = int32_t;

enum class NetworkNodeKind : uint8_t { device, network_card, network_switch, host };

// One direction of a cable. Two directions are two links, and may differ.
struct Link {
  NetworkNode from = 0;
  NetworkNode to = 0;
  BytesPerSecond bandwidth;
  Seconds latency;
};

// Built once, then only read. Memory is linear in nodes and links.
class Topology {
 public:
  // InputError for a link that names no node, leads to itself, or has no bandwidth.
  Topology(int64_t device_count, std::vector<NetworkNodeKind> others, std::vector<Link> links);

  int64_t device_count() const { return device_count_; }
  int64_t node_count() const { return static_cast<int64_t>(first_out_.size()) - 1; }
  std::span<const Link> links() const { return links_; }
  NetworkNodeKind kind(NetworkNode node) const;
  std::span<const LinkIndex> links_out_of(NetworkNode node) const;  // in the order they were given

 private:
  int64_t device_count_ = 0;
  std::vector<NetworkNodeKind> others_;
  std::vector<Link> links_;
  std::vector<int32_t> first_out_;
  std::vector<LinkIndex> out_;
};

}  // namespace foretoken
