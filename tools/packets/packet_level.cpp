#include "packet_level.h"

#include <map>
#include <utility>

#include "base/error.h"
#include "packet_run.h"

namespace foretoken {
namespace {

struct Wiring {
  std::vector<Cable> cables;
  std::vector<CableUse> use_of;  // by link of the topology
};

// Each link with the next one back between the same nodes.
Wiring wire(const Topology& topology) {
  Wiring wiring{.use_of = std::vector<CableUse>(topology.links().size())};
  std::map<std::pair<NetworkNode, NetworkNode>, std::vector<LinkIndex>> waiting;
  for (LinkIndex index = 0; index < std::ssize(topology.links()); ++index) {
    const Link& link = topology.link(index);
    std::vector<LinkIndex>& back = waiting[{link.to, link.from}];
    if (back.empty()) {
      waiting[{link.from, link.to}].push_back(index);
      continue;
    }
    const LinkIndex first = back.front();
    back.erase(back.begin());
    const auto cable = static_cast<int32_t>(wiring.cables.size());
    wiring.use_of[static_cast<size_t>(first)] = {cable, 0};
    wiring.use_of[static_cast<size_t>(index)] = {cable, 1};
    wiring.cables.push_back({.ends = {link.to, link.from},
                             .bytes_per_second = {topology.link(first).bandwidth.value(), link.bandwidth.value()},
                             .latency_seconds = link.latency.value()});
  }
  for (const auto& [ends, links] : waiting) {
    if (links.empty()) continue;
    throw InputError({.source = "topology",
                      .value = topology.name(ends.first) + " to " + topology.name(ends.second),
                      .expected = "a link back as well: packets are acknowledged"});
  }
  return wiring;
}

}  // namespace

std::vector<double> packet_level_ends(const TrafficCase& traffic, const Topology& topology) {
  if (traffic.routing == LinkRouting::adaptive) {
    throw InputError({.source = "routing", .value = "adaptive", .expected = "shortest or ecmp: a flow takes one path"});
  }
  const Wiring wiring = wire(topology);
  Router router(topology, traffic.routing);
  std::vector<PacketFlow> flows;
  for (const TimedTransfer& timed : traffic.transfers) {
    std::vector<RouteLink> route;
    router.route(timed.transfer.from, timed.transfer.to, flows.size(), route);
    PacketFlow& flow = flows.emplace_back();
    flow.bytes = timed.transfer.bytes;
    flow.start_seconds = timed.start.value();
    for (const RouteLink& step : route) flow.path.push_back(wiring.use_of[static_cast<size_t>(step.link)]);
  }
  return packet_level_ends(static_cast<int32_t>(topology.node_count()), wiring.cables, flows,
                           {.payload_bytes = static_cast<int32_t>(traffic.packets.payload_bytes),
                            .window_bytes = static_cast<int32_t>(traffic.packets.window_bytes)});
}

}  // namespace foretoken
