#include "network/given_links.h"

#include <fmt/format.h>

#include "base/error.h"
#include "hardware/usual_cluster.h"

namespace foretoken {
namespace {

constexpr const char* given = "given";

}  // namespace

BytesPerSecond pcie_slot_rate(int generation) {
  constexpr int first = 3, last = 7;
  if (generation < first || generation > last) {
    throw InputError({.field = "link",
                      .path = "pcie",
                      .value = fmt::format("{}", generation),
                      .expected = fmt::format("a generation from {} to {}", first, last)});
  }
  return BytesPerSecond(16e9 * static_cast<double>(1 << (generation - first)));
}

void set_links(Node& node, const LinkSpec& link) {
  NodeFabric& fabric = node.fabric;
  if (link.pcie_generation > 0) {
    fabric = {.kind = NodeFabricKind::pcie,
              .bandwidth = {.value = pcie_slot_rate(link.pcie_generation), .source = given}};
  }
  if (link.nvlink_pairs) {
    if (!node.device.link_bandwidth) {
      throw InputError(
          {.field = "link", .path = "nvlink-pairs", .value = node.device.name, .expected = "a device with NVLink"});
    }
    fabric.bridge = *node.device.link_bandwidth;
  }
  if (link.peer_access) fabric.peer_access = Fact<bool>{.value = *link.peer_access, .source = given};
  if (link.bandwidth) {
    fabric.bandwidth = {.value = *link.bandwidth, .source = given};
    fabric.ring_bandwidth = fabric.bandwidth;
  }
  if (link.latency) {
    fabric.latency = Fact<Seconds>{.value = *link.latency, .source = given};
    fabric.ring_latency = fabric.latency;
  }
  if (link.nics == 0 && !link.nic_bandwidth) return;
  std::optional<NetworkCards>& cards = node.network_cards;
  if (!cards) cards = assumed_cards(node.device_count);
  if (link.nics > 0) cards->count = {.value = link.nics, .source = given};
  if (link.nic_bandwidth) cards->bandwidth = {.value = *link.nic_bandwidth, .source = given};
}

void set_links(Cluster& cluster, const LinkSpec& link) {
  set_links(cluster.node, link);
  if (link.nic_bandwidth) cluster.fabric.nic_bandwidth = {.value = *link.nic_bandwidth, .source = given};
}

}  // namespace foretoken
