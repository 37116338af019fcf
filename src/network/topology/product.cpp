#include "network/topology/product.h"

namespace foretoken {
namespace {

// Adds the switches and links of `part`, with its device i at `first + i x stride`.
void add_copy(NetworkGraph& graph, const NetworkGraph& part, int64_t first, int64_t stride) {
  const int64_t first_other = graph.device_count + static_cast<int64_t>(graph.others.size()) - part.device_count;
  graph.others.insert(graph.others.end(), part.others.begin(), part.others.end());
  const auto renumbered = [&](NetworkNode node) {
    return static_cast<NetworkNode>(node < part.device_count ? first + node * stride : first_other + node);
  };
  for (Link link : part.links) {
    link.from = renumbered(link.from);
    link.to = renumbered(link.to);
    graph.links.push_back(link);
  }
}

}  // namespace

NetworkGraph copies_of(const NetworkGraph& graph, int64_t count) {
  NetworkGraph copies{.device_count = graph.device_count * count, .devices_forward = graph.devices_forward};
  for (int64_t copy = 0; copy < count; ++copy) add_copy(copies, graph, copy * graph.device_count, 1);
  return copies;
}

NetworkGraph product_of(std::span<const NetworkGraph> dimensions) {
  if (dimensions.size() == 1) return dimensions[0];
  NetworkGraph graph{.device_count = 1, .devices_forward = true};
  for (const NetworkGraph& dimension : dimensions) graph.device_count *= dimension.device_count;
  int64_t stride = 1;
  for (const NetworkGraph& dimension : dimensions) {
    const int64_t span = stride * dimension.device_count;
    for (int64_t device = 0; device < graph.device_count; ++device) {
      if (device % span < stride) add_copy(graph, dimension, device, stride);  // the first of its line
    }
    stride = span;
  }
  return graph;
}

}  // namespace foretoken
