// Groups of routers, all joined inside a group, and groups joined by global links. J. Kim, W. Dally, S. Scott, D. Abts,
// "Technology-driven, highly-scalable dragonfly topology", ISCA 2008. Routes are the shortest, without Valiant detours.
#include <algorithm>

#include <fmt/format.h>

#include "base/error.h"
#include "network/topology/kinds/list.h"

namespace foretoken {
namespace dragonfly {
namespace {

constexpr TopologySetting settings[] = {
    {"global_links", SettingUnit::number, "per router; as many as join all groups once if not given"},
    {"global_bandwidth", SettingUnit::rate, "of a link between groups; the bandwidth of a device if not given"},
    {"global_latency", SettingUnit::time, "of a link between groups; the latency of a link if not given"},
};

NetworkGraph make(const TopologyPart& part) {
  const int64_t per_router = part.sizes[0], routers = part.sizes[1], groups = part.sizes[2];
  check_link_count(part, static_cast<double>(routers) * static_cast<double>(routers) * static_cast<double>(groups));
  const int64_t others = groups - 1;
  const int64_t per_router_global =
      whole_setting(part, "global_links", std::max<int64_t>(1, (others + routers - 1) / routers));
  // Checked before anything is multiplied as whole numbers: a setting may be anything up to 2^53.
  check_link_count(part,
                   static_cast<double>(routers) * static_cast<double>(per_router_global) * static_cast<double>(groups));
  const int64_t global_ports = routers * per_router_global;
  if (global_ports < others) {
    throw InputError({.source = "topology",
                      .path = part.text,
                      .value = fmt::format("global_links={}", per_router_global),
                      .expected = fmt::format("at least {}, so that every two groups are joined",
                                              (others + routers - 1) / routers)});
  }
  const BytesPerSecond global_bandwidth(part.setting("global_bandwidth", part.bandwidth.value()));
  const Seconds global_latency(part.setting("global_latency", part.latency.value()));

  NetworkGraph graph{.device_count = per_router * routers * groups, .devices_forward = false};
  NetworkNode device = 0;
  for (int64_t i = 0; i < routers * groups; ++i) {
    const NetworkNode router = graph.add(NetworkNodeKind::network_switch);
    for (int64_t port = 0; port < per_router; ++port) graph.connect(device++, router, part.bandwidth, part.latency);
    for (int64_t earlier = i % routers; earlier > 0; --earlier) {
      graph.connect(router - static_cast<NetworkNode>(earlier), router, part.bandwidth, part.latency);
    }
  }
  // Port p of a group leads to the group p + 1 further on; ports are dealt to routers in order, and begin again with
  // the first group when all are joined.
  const auto router_at = [&](int64_t group, int64_t port) {
    return static_cast<NetworkNode>(graph.device_count + group * routers + port / per_router_global);
  };
  for (int64_t round = 0; others > 0 && (round + 1) * others <= global_ports; ++round) {
    for (int64_t a = 0; a < groups; ++a) {
      for (int64_t b = a + 1; b < groups; ++b) {
        const int64_t port_a = b - a - 1, port_b = groups - (b - a) - 1;
        graph.connect(router_at(a, round * others + port_a), router_at(b, round * others + port_b), global_bandwidth,
                      global_latency);
      }
    }
  }
  return graph;
}

}  // namespace
}  // namespace dragonfly

TopologyKind dragonfly_kind() {
  return {.name = "dragonfly",
          .sizes = "DEVICES_PER_ROUTER x ROUTERS_PER_GROUP x GROUPS",
          .least_sizes = 3,
          .most_sizes = 3,
          .summary = "groups of joined routers, every two groups joined by global links",
          .settings = dragonfly::settings,
          .make = dragonfly::make};
}

}  // namespace foretoken
