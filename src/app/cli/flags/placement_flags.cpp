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
  options.settings(
      "--link", link,
      "Known properties of the links, for example bandwidth=20,latency=10: bandwidth (GB/s between two GPUs of a node, "
      "one direction) and latency (us per hop) achieved by collectives; pcie (generation of x16 slots); "
      "peer-access=yes or no; nvlink-pairs; nics (network cards per node) and nic-bandwidth (GB/s each)");
  options.text(
      "--rank-order", rank_order,
      "How ranks are placed on the GPUs, innermost dimension first [tp-cp-pp-dp; tp-cp-dp-pp for --phase train]");
}

PlacementSpec PlacementFlags::spec() const {
  PlacementSpec result{.node = node, .cluster = cluster};
  if (!rank_order.empty()) result.order = parse_rank_order("--rank-order", rank_order);
  if (link.empty()) return result;
  double bandwidth = 0, latency = -1, nic_bandwidth = 0;
  int64_t pcie = 0, nics = 0;
  std::string peer_access;
  const auto declare = [&](Options& options) {
    options.number("--bandwidth", bandwidth, {.least = 0.01, .most = 1e5},
                   "Bandwidth between two GPUs in one direction, in GB/s");
    options.number("--latency", latency, {.least = 0, .most = 1e6}, "Latency per hop, in microseconds");
    options.integer("--pcie", pcie, {.least = 3, .most = 7}, "PCIe generation of the x16 slots");
    options.choice("--peer-access", peer_access, {"yes", "no"}, "Whether GPUs can write to each other over PCIe");
    options.flag("--nvlink-pairs", result.link.nvlink_pairs, "GPUs 2i and 2i+1 are connected by an NVLink bridge");
    options.integer("--nics", nics, {.least = 1, .most = 4096}, "Number of network cards per node");
    options.number("--nic-bandwidth", nic_bandwidth, {.least = 0.01, .most = 1e5},
                   "Bandwidth of each network card, in GB/s");
  };
  parse_settings("--link", link, declare);
  if (bandwidth > 0) result.link.bandwidth = BytesPerSecond(bandwidth * 1e9);
  if (latency >= 0) result.link.latency = Seconds(latency * 1e-6);
  if (nic_bandwidth > 0) result.link.nic_bandwidth = BytesPerSecond(nic_bandwidth * 1e9);
  if (!peer_access.empty()) result.link.peer_access = peer_access == "yes";
  result.link.pcie_generation = static_cast<int>(pcie);
  result.link.nics = static_cast<int>(nics);
  return result;
}

}  // namespace foretoken
