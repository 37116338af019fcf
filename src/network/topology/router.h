// Which links bytes take between two devices: always a path of the fewest links.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "network/topology/topology.h"

namespace foretoken {

// shortest: the first of the shortest paths, in the order of the links, for every flow.
// ecmp: at each node one of the links that lead on, by a hash of from, to and flow number, as switches do.
// adaptive: all shortest paths at once, in proportion to the bandwidth of the links that lead on; what adaptive
// routing and packet spraying achieve on average.
enum class LinkRouting : uint8_t { shortest, ecmp, adaptive };
inline constexpr std::string_view link_routing_names[] = {"shortest", "ecmp", "adaptive"};

// A link and the part of the bytes that crosses it.
struct RouteLink {
  LinkIndex link = 0;
  double share = 1;
};

// Keeps what it has searched, within memory linear in the links; so one router is for one thread. Results do not depend
// on what was asked before.
class Router {
 public:
  // The topology must outlive the router.
  Router(const Topology& topology, LinkRouting routing);
  ~Router();
  Router(Router&&) noexcept;
  Router& operator=(Router&&) noexcept;

  // Appends the links from one device to another to `route`, in order of distance; nothing for from == to. Asking for
  // one destination after another is faster than jumping between them. InputError when there is no path.
  void route(NetworkNode from, NetworkNode to, uint64_t flow, std::vector<RouteLink>& route);

  // Links on the shortest path; 0 for from == to. InputError when there is none.
  int64_t distance(NetworkNode from, NetworkNode to);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace foretoken
