// Devices in a line, a grid or a grid that closes on itself, each passing on what is meant for others.
#include "network/topology/kinds/list.h"

namespace foretoken {
namespace grid {
namespace {

// Neighbours along each dimension, the first dimension fastest; `closed` also joins the ends. Two devices in a closed
// dimension are joined once, as there is no other way round.
NetworkGraph grid(const TopologyPart& part, bool closed) {
  int64_t devices = 1;
  for (const int64_t size : part.sizes) devices *= size;
  NetworkGraph graph{.device_count = devices, .devices_forward = true};
  int64_t stride = 1;
  for (const int64_t size : part.sizes) {
    for (int64_t device = 0; device < devices; ++device) {
      const int64_t position = device / stride % size;
      const bool at_end = position + 1 == size;
      if (at_end && (!closed || size < 3)) continue;
      const int64_t neighbour = at_end ? device - position * stride : device + stride;
      graph.connect(static_cast<NetworkNode>(device), static_cast<NetworkNode>(neighbour), part.bandwidth,
                    part.latency);
    }
    stride *= size;
  }
  return graph;
}

NetworkGraph make_open(const TopologyPart& part) {
  return grid(part, false);
}

NetworkGraph make_closed(const TopologyPart& part) {
  return grid(part, true);
}

constexpr size_t most_dimensions = 8;

}  // namespace
}  // namespace grid

TopologyKind ring_kind() {
  return {
      .name = "ring", .sizes = "DEVICES", .summary = "a ring with links both ways round", .make = grid::make_closed};
}

TopologyKind mesh_kind() {
  return {.name = "mesh",
          .sizes = "A x B x ...",
          .most_sizes = grid::most_dimensions,
          .summary = "a grid of any number of dimensions",
          .make = grid::make_open};
}

TopologyKind torus_kind() {
  return {.name = "torus",
          .sizes = "A x B x ...",
          .most_sizes = grid::most_dimensions,
          .summary = "a grid whose dimensions close on themselves, as TPU pods",
          .make = grid::make_closed};
}

}  // namespace foretoken
