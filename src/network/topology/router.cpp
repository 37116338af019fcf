#include "network/topology/router.h"

#include <algorithm>
#include <deque>
#include <optional>

#include "base/error.h"
#include "base/random.h"

namespace foretoken {
namespace {

constexpr int32_t not_reached = -1;

// Distances to one node from those that forward traffic, searched backwards and only as far as anyone asks.
struct DistanceField {
  std::vector<int32_t> distance;  // by number among the forwarding nodes
  std::vector<NetworkNode> frontier;
  int32_t depth = 0;

  bool exhausted() const { return frontier.empty(); }
};

// A node between the destination and an anchor, and its distance to the destination.
struct Tail {
  NetworkNode node = 0;
  int32_t distance = 0;
};

struct Anchor {
  DistanceField* field = nullptr;
  int32_t offset = 0;  // links from the anchor to the destination
};

// What is kept of fields: this many distances per link of the topology.
constexpr int64_t kept_distances_per_link = 64;
constexpr size_t least_kept_fields = 64;

uint64_t mixed(uint64_t state, NetworkNode node) {
  state ^= static_cast<uint64_t>(node);
  return splitmix64(state);
}

}  // namespace

// A device hangs off the network by few links. Behind the cards and switches that only lead to it (its tails) lies the
// first node with several ways in (the anchor), and one field of distances to an anchor serves all devices behind it.
// So a fat tree needs a field per leaf switch, not per device.
struct Router::State {
  State(const Topology& of, LinkRouting kind) : topology(of), routing(kind) {
    first_forwarding = topology.graph().devices_forward ? 0 : static_cast<NetworkNode>(topology.device_count());
    field_of.resize(static_cast<size_t>(topology.node_count() - first_forwarding));
    const auto links = static_cast<int64_t>(topology.links().size());
    const int64_t affordable = kept_distances_per_link * links / std::max<int64_t>(1, std::ssize(field_of));
    most_fields = std::max(least_kept_fields, static_cast<size_t>(affordable));
    for (NetworkNode device = 0; device < topology.device_count(); ++device) {
      most_fields = std::max(most_fields, topology.links_into(device).size());
    }
    if (routing == LinkRouting::adaptive) share_at.resize(static_cast<size_t>(topology.node_count()));
  }

  size_t index_of(NetworkNode node) const { return static_cast<size_t>(node - first_forwarding); }

  DistanceField& field_to(NetworkNode anchor) {
    std::unique_ptr<DistanceField>& field = field_of[index_of(anchor)];
    if (field) return *field;
    if (kept.size() == most_fields) {
      field_of[index_of(kept.front())].reset();
      kept.pop_front();
    }
    kept.push_back(anchor);
    field = std::make_unique<DistanceField>();
    field->distance.assign(field_of.size(), not_reached);
    field->distance[index_of(anchor)] = 0;
    field->frontier = {anchor};
    return *field;
  }

  void deepen(DistanceField& field, int32_t depth) {
    while (field.depth < depth && !field.exhausted()) {
      ++field.depth;
      next_frontier.clear();
      for (const NetworkNode node : field.frontier) {
        for (const LinkIndex link : topology.links_into(node)) {
          const NetworkNode from = topology.link(link).from;
          if (!topology.forwards(from) || field.distance[index_of(from)] != not_reached) continue;
          field.distance[index_of(from)] = field.depth;
          next_frontier.push_back(from);
        }
      }
      std::swap(field.frontier, next_frontier);
    }
  }

  // The nodes that forward traffic into this one, as far as it matters: none, one, or several.
  struct WaysIn {
    std::optional<NetworkNode> first;
    bool several = false;
  };

  WaysIn ways_into(NetworkNode node) const {
    WaysIn ways;
    for (const LinkIndex link : topology.links_into(node)) {
      const NetworkNode from = topology.link(link).from;
      if (!topology.forwards(from) || ways.first == from) continue;
      if (ways.first) return {.first = ways.first, .several = true};
      ways.first = from;
    }
    return ways;
  }

  bool is_tail(NetworkNode node, size_t first_tail) const {
    return std::any_of(tails.begin() + static_cast<int64_t>(first_tail), tails.end(),
                       [&](const Tail& tail) { return tail.node == node; });
  }

  void add_branch(NetworkNode node, int32_t distance) {
    const size_t first = tails.size();
    tails.push_back({node, distance});
    while (true) {
      const WaysIn ways = ways_into(node);
      if (ways.several) {
        anchors.push_back({&field_to(node), distance});
        return;
      }
      if (!ways.first || is_tail(*ways.first, first)) return;  // nothing else leads here
      node = *ways.first;
      tails.push_back({node, ++distance});
    }
  }

  void aim_at(NetworkNode to) {
    if (destination == to) return;
    destination = to;
    tails.clear();
    anchors.clear();
    if (topology.forwards(to)) {
      add_branch(to, 0);
      return;
    }
    tails.push_back({to, 0});
    ways_in.clear();
    for (const LinkIndex link : topology.links_into(to)) ways_in.push_back(topology.link(link).from);
    std::sort(ways_in.begin(), ways_in.end());
    ways_in.erase(std::unique(ways_in.begin(), ways_in.end()), ways_in.end());
    for (const NetworkNode from : ways_in) {
      if (topology.forwards(from)) add_branch(from, 1);
    }
  }

  // Links from `node` to the destination if at most `most`, else not_reached.
  int32_t distance_within(NetworkNode node, int32_t most) {
    int32_t least = most + 1;
    for (const auto& [tail, distance] : tails) {
      if (tail == node) least = std::min(least, distance);
    }
    if (topology.forwards(node)) {
      for (const auto& [field, offset] : anchors) {
        deepen(*field, least - 1 - offset);
        const int32_t distance = field->distance[index_of(node)];
        if (distance != not_reached) least = std::min(least, distance + offset);
      }
    }
    return least <= most ? least : not_reached;
  }

  bool all_exhausted() const {
    return std::all_of(anchors.begin(), anchors.end(), [](const Anchor& anchor) { return anchor.field->exhausted(); });
  }

  // The search goes no deeper than it must: a neighbour in a ring costs a few steps, however long the ring is.
  int32_t distance_from(NetworkNode from) {
    const auto no_bound = static_cast<int32_t>(topology.node_count());
    int32_t most = no_bound;  // as far as all fields were searched before
    for (const auto& [field, offset] : anchors) most = std::min(most, field->depth + offset);
    for (;; ++most) {
      for (const auto& [field, offset] : anchors) deepen(*field, most - offset);
      const bool last = all_exhausted();
      int32_t least = last ? no_bound : most;
      bool found = false;
      for (const LinkIndex link : topology.links_out_of(from)) {
        const int32_t distance = distance_within(topology.link(link).to, least);
        if (distance == not_reached) continue;
        least = distance;
        found = true;
      }
      if (found) return least + 1;
      if (last) break;
    }
    throw InputError({.source = "topology",
                      .value = topology.name(from) + " to " + topology.name(destination),
                      .expected = "a path between the two devices"});
  }

  bool leads_on(LinkIndex link, int32_t distance) {
    return distance_within(topology.link(link).to, distance - 1) != not_reached;
  }

  // Between the destination and the nearest anchor only tails are one step nearer, and few links lead into them.
  bool only_tails_are_nearer(int32_t distance) const {
    return std::all_of(anchors.begin(), anchors.end(),
                       [&](const Anchor& anchor) { return anchor.offset >= distance - 1; });
  }

  // The links out of `node` that come one step nearer, in their order.
  void find_links_on(NetworkNode node, int32_t distance) {
    links_on.clear();
    if (only_tails_are_nearer(distance)) {
      for (const auto& [tail, tail_distance] : tails) {
        if (tail_distance != distance - 1) continue;
        for (const LinkIndex link : topology.links_into(tail)) {
          if (topology.link(link).from == node) links_on.push_back(link);
        }
      }
      std::sort(links_on.begin(), links_on.end());
      links_on.erase(std::unique(links_on.begin(), links_on.end()), links_on.end());
    } else {
      for (const LinkIndex link : topology.links_out_of(node)) {
        if (leads_on(link, distance)) links_on.push_back(link);
      }
    }
    ensure(!links_on.empty(), "a node at a distance has a neighbour that is nearer");
  }

  // One of the links that come nearer, each as likely. A few are tried before all are looked at: on the way up a tree
  // half of a switch's links lead on.
  LinkIndex hashed_link_on(NetworkNode node, int32_t distance, uint64_t hash) {
    const std::span<const LinkIndex> out = topology.links_out_of(node);
    constexpr int tries = 4, bits = 16;
    if (out.size() < (size_t{1} << bits) && !only_tails_are_nearer(distance)) {
      for (int i = 0; i < tries; ++i) {
        const uint64_t piece = (hash >> (bits * i)) & ((1U << bits) - 1);
        const LinkIndex link = out[(piece * out.size()) >> bits];
        if (leads_on(link, distance)) return link;
      }
    }
    find_links_on(node, distance);
    return links_on[splitmix64(hash) % links_on.size()];
  }

  void single_path(NetworkNode from, uint64_t flow, std::vector<RouteLink>& route) {
    const uint64_t flow_hash = mixed(mixed(splitmix64(flow), from), destination);
    NetworkNode node = from;
    for (int32_t distance = distance_from(from); distance > 0; --distance) {
      LinkIndex link = 0;
      if (routing == LinkRouting::ecmp) {
        link = hashed_link_on(node, distance, mixed(flow_hash, node));
      } else {
        find_links_on(node, distance);
        link = links_on.front();
      }
      route.push_back({.link = link});
      node = topology.link(link).to;
    }
    ensure(node == destination, "a route ends at its destination");
  }

  void all_paths(NetworkNode from, std::vector<RouteLink>& route) {
    std::vector<NetworkNode> level = {from}, next;
    share_at[static_cast<size_t>(from)] = 1;
    for (int32_t distance = distance_from(from); distance > 0; --distance) {
      next.clear();
      for (const NetworkNode node : level) {
        find_links_on(node, distance);
        double bandwidth = 0;
        for (const LinkIndex link : links_on) bandwidth += topology.link(link).bandwidth.value();
        for (const LinkIndex index : links_on) {
          const Link& link = topology.link(index);
          const double share = share_at[static_cast<size_t>(node)] * (link.bandwidth.value() / bandwidth);
          route.push_back({.link = index, .share = share});
          double& arriving = share_at[static_cast<size_t>(link.to)];
          if (arriving == 0) next.push_back(link.to);
          arriving += share;
        }
        share_at[static_cast<size_t>(node)] = 0;
      }
      std::swap(level, next);
    }
    share_at[static_cast<size_t>(destination)] = 0;
  }

  const Topology& topology;
  LinkRouting routing;
  NetworkNode first_forwarding = 0;

  std::vector<std::unique_ptr<DistanceField>> field_of;  // by number among the forwarding nodes
  std::deque<NetworkNode> kept;                          // whose fields there are, oldest first
  size_t most_fields = 0;

  // Where the last route went, as most callers ask for one destination many times.
  NetworkNode destination = -1;
  std::vector<Tail> tails;
  std::vector<Anchor> anchors;

  // Scratch space.
  std::vector<NetworkNode> next_frontier, ways_in;
  std::vector<LinkIndex> links_on;
  std::vector<double> share_at;
};

Router::Router(const Topology& topology, LinkRouting routing) : state_(std::make_unique<State>(topology, routing)) {}
Router::~Router() = default;
Router::Router(Router&&) noexcept = default;
Router& Router::operator=(Router&&) noexcept = default;

void Router::route(NetworkNode from, NetworkNode to, uint64_t flow, std::vector<RouteLink>& route) {
  if (from == to) return;
  state_->aim_at(to);
  if (state_->routing == LinkRouting::adaptive) {
    state_->all_paths(from, route);
  } else {
    state_->single_path(from, flow, route);
  }
}

int64_t Router::distance(NetworkNode from, NetworkNode to) {
  if (from == to) return 0;
  state_->aim_at(to);
  return state_->distance_from(from);
}

}  // namespace foretoken
