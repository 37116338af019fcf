// A link between every two devices: NVLink meshes, xGMI.
#include "network/topology/kinds/list.h"

namespace foretoken {
namespace fully_connected {
namespace {

NetworkGraph make(const TopologyPart& part) {
  const int64_t devices = part.sizes[0];
  check_link_count(part, static_cast<double>(devices) * static_cast<double>(devices - 1));
  NetworkGraph graph{.device_count = devices, .devices_forward = false};
  for (NetworkNode a = 0; a < devices; ++a) {
    for (NetworkNode b = a + 1; b < devices; ++b) graph.connect(a, b, part.bandwidth, part.latency);
  }
  return graph;
}

}  // namespace
}  // namespace fully_connected

TopologyKind fully_connected_kind() {
  return {.name = "fully_connected",
          .sizes = "DEVICES",
          .summary = "a link between every two devices: NVLink mesh, xGMI",
          .make = fully_connected::make};
}

}  // namespace foretoken
