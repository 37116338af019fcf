// How far nodes are from a destination, searched backwards and only as far as anyone asks.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <vector>

#include "base/error.h"
#include "network/topology/topology.h"

namespace foretoken {

// The complaint about two devices that no path joins.
InputError no_path(const Topology& topology, NetworkNode from, NetworkNode to);

// A device hangs off the network by few links. Behind the cards and switches that only lead to it (its tails) lies the
// first node with several ways in (the anchor), and one field of distances to an anchor serves all devices behind it.
// So a fat tree needs a field per leaf switch, not per device. Fields are kept as long as memory stays linear in links.
class DistanceSearch {
 public:
  // The topology must outlive it.
  explicit DistanceSearch(const Topology& topology);

  // Whose distances the other functions give, until the next call.
  void aim_at(NetworkNode destination);

  // Links on the shortest path from a device; InputError when there is none.
  int32_t distance_from(NetworkNode device);

  // Whether a link ends less than `distance` links from the destination.
  bool leads_on(LinkIndex link, int32_t distance) {
    return distance_within(topology_.link(link).to, distance - 1) != not_reached;
  }

  // The links out of a node at this distance that come one step nearer, in their order.
  void find_links_on(NetworkNode node, int32_t distance, std::vector<LinkIndex>& links);

  // Whether find_links_on() need not look at all links out of a node.
  bool only_tails_are_nearer(int32_t distance) const;

 private:
  static constexpr int32_t not_reached = -1;
  static constexpr NetworkNode no_node = -1;

  // Distances to one anchor, by number of the searched node; of all up to `depth`.
  struct Field {
    std::vector<int32_t> distance;
    std::vector<int32_t> frontier;  // numbers of those at `depth`
    int32_t depth = 0;
    std::list<size_t>::iterator kept;  // its place in kept_
  };
  struct Anchor {
    Field* field = nullptr;
    int32_t offset = 0;  // links from the anchor to the destination
  };
  struct Tail {
    NetworkNode node = 0;
    int32_t distance = 0;
  };

  // A node's neighbours on one side, as far as they forward traffic: how many, and the first; 2 stands for more.
  struct Neighbours {
    int count = 0;
    NetworkNode first = no_node;
  };

  Neighbours neighbours(std::span<const LinkIndex> links, NetworkNode Link::*end) const;
  size_t number_of(NetworkNode node) const { return static_cast<size_t>(number_[static_cast<size_t>(node)]); }
  void number_nodes();
  void list_searched_links();
  int32_t distance_within(NetworkNode node, int32_t most);
  Field& field_to(NetworkNode anchor);
  void deepen(Field& field, int32_t depth);
  void add_branch(NetworkNode node, int32_t distance);
  bool is_tail(NetworkNode node, size_t first_tail) const;

  const Topology& topology_;
  // By node: the only neighbour of one that leads nowhere else, such as a card. Such nodes are not searched, nor are
  // devices that forward nothing; the others are numbered, and have the numbers of those that lead to them side by
  // side.
  std::vector<NetworkNode> hangs_off_;
  std::vector<int32_t> number_;  // by node; -1 when not searched
  std::vector<int32_t> first_in_, in_;

  std::vector<std::unique_ptr<Field>> field_of_;  // by number of the anchor
  // Numbers of anchors with a field, the one used longest ago first. That one makes room for a new field; as
  // most_fields_ is no less than the anchors of any destination, it is none of those in use.
  std::list<size_t> kept_;
  size_t most_fields_ = 0;

  NetworkNode destination_ = no_node;
  std::vector<Tail> tails_;
  std::vector<Anchor> anchors_;
  std::vector<int32_t> next_frontier_;  // scratch space
  std::vector<NetworkNode> ways_in_;
};

}  // namespace foretoken
