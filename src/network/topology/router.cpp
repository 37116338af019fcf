#include "network/topology/router.h"

#include <utility>

#include "base/error.h"
#include "base/random.h"
#include "network/topology/distance_search.h"

namespace foretoken {
namespace {

uint64_t mixed(uint64_t state, NetworkNode node) {
  state ^= static_cast<uint64_t>(node);
  return splitmix64(state);
}

}  // namespace

struct Router::State {
  State(const Topology& of, LinkRouting kind) : topology(of), routing(kind), search(of) {
    if (routing == LinkRouting::adaptive) share_at.resize(static_cast<size_t>(topology.node_count()));
  }

  // One of the links that come nearer, each as likely. A few are tried before all are looked at: on the way up a tree
  // half of a switch's links lead on.
  LinkIndex hashed_link_on(NetworkNode node, int32_t distance, uint64_t hash) {
    const std::span<const LinkIndex> out = topology.links_out_of(node);
    constexpr int tries = 4, bits = 16;
    if (out.size() < (size_t{1} << bits) && !search.only_tails_are_nearer(distance)) {
      for (int i = 0; i < tries; ++i) {
        const uint64_t piece = (hash >> (bits * i)) & ((1U << bits) - 1);
        const LinkIndex link = out[(piece * out.size()) >> bits];
        if (search.leads_on(link, distance)) return link;
      }
    }
    search.find_links_on(node, distance, links_on);
    return links_on[splitmix64(hash) % links_on.size()];
  }

  void single_path(NetworkNode from, NetworkNode to, uint64_t flow, std::vector<RouteLink>& route) {
    const uint64_t flow_hash = mixed(mixed(splitmix64(flow), from), to);
    NetworkNode node = from;
    for (int32_t distance = search.distance_from(from); distance > 0; --distance) {
      LinkIndex link = 0;
      if (routing == LinkRouting::ecmp) {
        link = hashed_link_on(node, distance, mixed(flow_hash, node));
      } else {
        search.find_links_on(node, distance, links_on);
        link = links_on.front();
      }
      route.push_back({.link = link});
      node = topology.link(link).to;
    }
    ensure(node == to, "a route ends at its destination");
  }

  void all_paths(NetworkNode from, NetworkNode to, std::vector<RouteLink>& route) {
    level = {from};
    share_at[static_cast<size_t>(from)] = 1;
    for (int32_t distance = search.distance_from(from); distance > 0; --distance) {
      next_level.clear();
      for (const NetworkNode node : level) {
        search.find_links_on(node, distance, links_on);
        double bandwidth = 0;
        for (const LinkIndex link : links_on) bandwidth += topology.link(link).bandwidth.value();
        for (const LinkIndex index : links_on) {
          const Link& link = topology.link(index);
          const double share = share_at[static_cast<size_t>(node)] * (link.bandwidth.value() / bandwidth);
          route.push_back({.link = index, .share = share});
          double& arriving = share_at[static_cast<size_t>(link.to)];
          if (arriving == 0) next_level.push_back(link.to);
          arriving += share;
        }
        share_at[static_cast<size_t>(node)] = 0;
      }
      std::swap(level, next_level);
    }
    share_at[static_cast<size_t>(to)] = 0;
  }

  const Topology& topology;
  LinkRouting routing;
  DistanceSearch search;
  // Scratch space.
  std::vector<LinkIndex> links_on;
  std::vector<double> share_at;  // by node, of the bytes that arrive there
  std::vector<NetworkNode> level, next_level;
};

Router::Router(const Topology& topology, LinkRouting routing) : state_(std::make_unique<State>(topology, routing)) {}
Router::~Router() = default;
Router::Router(Router&&) noexcept = default;
Router& Router::operator=(Router&&) noexcept = default;

void Router::route(NetworkNode from, NetworkNode to, uint64_t flow, std::vector<RouteLink>& route) {
  if (from == to) return;
  state_->search.aim_at(to);
  if (state_->routing == LinkRouting::adaptive) {
    state_->all_paths(from, to, route);
  } else {
    state_->single_path(from, to, flow, route);
  }
}

int64_t Router::distance(NetworkNode from, NetworkNode to) {
  if (from == to) return 0;
  state_->search.aim_at(to);
  return state_->search.distance_from(from);
}

}  // namespace foretoken
