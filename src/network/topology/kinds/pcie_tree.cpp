// Devices under PCIe switches, these under the host bridges of the processors, and those joined to each other.
#include "network/topology/kinds/list.h"

namespace foretoken {
namespace pcie_tree {
namespace {

constexpr TopologySetting settings[] = {
    {"host_bandwidth", SettingUnit::rate, "of a switch to its host bridge; the bandwidth of a device if not given"},
    {"socket_bandwidth", SettingUnit::rate, "between two hosts; the bandwidth of a device if not given"},
    {"socket_latency", SettingUnit::time, "between two hosts; the latency of a link if not given"},
};

NetworkGraph make(const TopologyPart& part) {
  const int64_t per_switch = part.sizes[0], switches = part.size(1), hosts = part.size(2);
  check_link_count(part, static_cast<double>(hosts) * static_cast<double>(hosts));
  const BytesPerSecond to_host(part.setting("host_bandwidth", part.bandwidth.value()));
  const BytesPerSecond between_hosts(part.setting("socket_bandwidth", part.bandwidth.value()));
  const Seconds between_hosts_latency(part.setting("socket_latency", part.latency.value()));

  NetworkGraph graph{.device_count = per_switch * switches * hosts, .devices_forward = false};
  std::vector<NetworkNode> bridges;
  NetworkNode device = 0;
  for (int64_t host = 0; host < hosts; ++host) {
    bridges.push_back(graph.add(NetworkNodeKind::host));
    for (int64_t i = 0; i < switches; ++i) {
      const NetworkNode parent = graph.add(NetworkNodeKind::network_switch);
      graph.connect(parent, bridges.back(), to_host, part.latency);
      for (int64_t port = 0; port < per_switch; ++port) graph.connect(device++, parent, part.bandwidth, part.latency);
    }
  }
  for (size_t a = 0; a < bridges.size(); ++a) {
    for (size_t b = a + 1; b < bridges.size(); ++b) {
      graph.connect(bridges[a], bridges[b], between_hosts, between_hosts_latency);
    }
  }
  return graph;
}

}  // namespace
}  // namespace pcie_tree

TopologyKind pcie_kind() {
  return {.name = "pcie",
          .sizes = "DEVICES_PER_SWITCH [x SWITCHES_PER_HOST [x HOSTS]]",
          .most_sizes = 3,
          .summary = "PCIe switches under host bridges, hosts joined by their own link",
          .settings = pcie_tree::settings,
          .make = pcie_tree::make};
}

}  // namespace foretoken
