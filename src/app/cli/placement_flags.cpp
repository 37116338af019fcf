#include "app/cli/placement_flags.h"

namespace foretoken {

void PlacementFlags::declare(Options& options) {
  options.heading("Links between GPUs");
  options.text("--node", node,
               "Node that the GPUs sit in: a name (foretoken devices) or a node file [the usual one of the device]");
  options.text(
      "--cluster", cluster,
      "Cluster that the GPUs sit in, for ranks on several nodes: a name or a cluster file [the usual one of the "
      "node]");
  options.settings(
      "--link", link,
      "What is known of the links, for example bandwidth=20,latency=10: bandwidth (GB/s between two GPUs of "
      "a node, one direction) and latency (us a hop) that collectives reach; pcie (generation, x16); "
      "peer-access=yes or no; nvlink-pairs; nics (network cards a node) and nic-bandwidth (GB/s each)");
  options.text("--rank-order", rank_order,
               "How ranks lie on the GPUs, innermost first [tp-cp-pp-dp; tp-cp-dp-pp for --phase train]");
}

PlacementSpec PlacementFlags::spec() const {
  PlacementSpec result{.node = node, .cluster = cluster};
  if (!rank_order.empty()) result.order = parse_rank_order("--rank-order", rank_order);
  if (link.empty()) return result;
  double bandwidth = 0, latency = -1, nic_bandwidth = 0;
  int64_t pcie = 0, nics = 0;
  std::string peer_access;
  const auto declare = [&](Options& options) {
    options.number("--bandwidth", bandwidth, {.least = 0.01, .most = 1e5}, "GB/s between two GPUs, one direction");
    options.number("--latency", latency, {.least = 0, .most = 1e6}, "Microseconds a hop");
    options.integer("--pcie", pcie, {.least = 3, .most = 7}, "PCIe generation of x16 slots");
    options.choice("--peer-access", peer_access, {"yes", "no"}, "GPUs write to each other over PCIe");
    options.flag("--nvlink-pairs", result.link.nvlink_pairs, "GPUs 2i and 2i+1 have an NVLink bridge");
    options.integer("--nics", nics, {.least = 1, .most = 4096}, "Network cards of a node");
    options.number("--nic-bandwidth", nic_bandwidth, {.least = 0.01, .most = 1e5}, "GB/s of each");
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
