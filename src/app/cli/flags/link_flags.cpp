#include "app/cli/flags/link_flags.h"

namespace foretoken {

void LinkFlags::declare(Options& options) {
  options.settings(
      "--link", link,
      "Known properties of the links, for example bandwidth=20,latency=10: bandwidth (GB/s between two GPUs of a node, "
      "one direction) and latency (us per hop) achieved by collectives; pcie (generation of x16 slots); "
      "peer-access=yes or no; nvlink-pairs; nics (network cards per node) and nic-bandwidth (GB/s each)");
}

LinkSpec LinkFlags::spec() const {
  LinkSpec result;
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
    options.flag("--nvlink-pairs", result.nvlink_pairs, "GPUs 2i and 2i+1 are connected by an NVLink bridge");
    options.integer("--nics", nics, {.least = 1, .most = 4096}, "Number of network cards per node");
    options.number("--nic-bandwidth", nic_bandwidth, {.least = 0.01, .most = 1e5},
                   "Bandwidth of each network card, in GB/s");
  };
  parse_settings("--link", link, declare);
  if (bandwidth > 0) result.bandwidth = BytesPerSecond(bandwidth * 1e9);
  if (latency >= 0) result.latency = Seconds(latency * 1e-6);
  if (nic_bandwidth > 0) result.nic_bandwidth = BytesPerSecond(nic_bandwidth * 1e9);
  if (!peer_access.empty()) result.peer_access = peer_access == "yes";
  result.pcie_generation = static_cast<int>(pcie);
  result.nics = static_cast<int>(nics);
  return result;
}

void declare_host_factor(Options& options, double& factor) {
  options.number("--host-factor", factor, {.least = 0.01, .most = 100},
                 "Multiply the host times of the software stack by this factor: 2 = a host half as fast");
}

}  // namespace foretoken
