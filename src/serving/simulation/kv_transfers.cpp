#include "serving/simulation/kv_transfers.h"

#include <algorithm>

namespace foretoken {
namespace {

Topology star(std::span<const KvPort> ports) {
  NetworkGraph graph{.device_count = static_cast<int64_t>(ports.size()), .others = {}, .links = {}, .names = {}};
  graph.devices_forward = false;
  const NetworkNode centre = graph.add(NetworkNodeKind::network_switch);
  for (size_t i = 0; i < ports.size(); ++i) {
    graph.connect(static_cast<NetworkNode>(i), centre, ports[i].bandwidth, Seconds(0));
  }
  return Topology(std::move(graph));
}

}  // namespace

KvTransfers::KvTransfers(std::span<const KvPort> ports)
    : ports_(ports.begin(), ports.end()), topology_(star(ports)), flows_(topology_) {}

JobNumber KvTransfers::start(size_t from, size_t to, double bytes, Picoseconds at) {
  const Transfer transfer{.from = static_cast<int32_t>(from), .to = static_cast<int32_t>(to), .bytes = bytes};
  const Seconds latency(std::max(ports_[from].latency.value(), ports_[to].latency.value()));
  return flows_.start(TransferPlan{.start = latency, .stages = {{.transfers = {transfer}, .per_message = {}}}}, at);
}

std::span<const JobNumber> KvTransfers::advance(Picoseconds now) {
  return flows_.advance(now);
}

}  // namespace foretoken
