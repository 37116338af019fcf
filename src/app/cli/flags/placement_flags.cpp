#include "app/cli/flags/placement_flags.h"

namespace foretoken {

void PlacementFlags::declare(Options& options) {
  options.heading("Links between GPUs");
  options.text("--node", node,
               "Node that the GPUs are in: a built-in name (`foretoken devices` lists them) or a node file [the usual "
               "node of the device]");
  options.text("--cluster", cluster,
               "Cluster that the GPUs are in, for ranks on several nodes: a built-in name or a cluster file [the usual "
               "cluster of the node]");
  link.declare(options);
  options.text(
      "--rank-order", rank_order,
      "How ranks are placed on the GPUs, innermost dimension first [tp-cp-pp-dp; tp-cp-dp-pp for --phase train]");
}

PlacementSpec PlacementFlags::spec() const {
  PlacementSpec result{.node = node, .cluster = cluster, .link = link.spec()};
  if (!rank_order.empty()) result.order = parse_rank_order("--rank-order", rank_order);
  return result;
}

}  // namespace foretoken
