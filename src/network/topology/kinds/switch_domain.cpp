// All devices on one switch without a bottleneck inside: NVSwitch, an NVL72 rack, one Ethernet switch.
#include "network/topology/kinds/list.h"

namespace foretoken {
namespace switch_domain {
namespace {

NetworkGraph make(const TopologyPart& part) {
  NetworkGraph graph{.device_count = part.sizes[0], .devices_forward = false};
  const NetworkNode centre = graph.add(NetworkNodeKind::network_switch);
  for (NetworkNode device = 0; device < graph.device_count; ++device) {
    graph.connect(device, centre, part.bandwidth, part.latency);
  }
  return graph;
}

}  // namespace
}  // namespace switch_domain

TopologyKind switch_kind() {
  return {.name = "switch",
          .sizes = "DEVICES",
          .summary = "one switch any pair crosses at full rate: NVSwitch, NVL72",
          .make = switch_domain::make};
}

}  // namespace foretoken
