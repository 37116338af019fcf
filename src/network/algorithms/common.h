// Small things several algorithms share.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <string>

#include "network/algorithms/algorithm.h"
#include "network/algorithms/double_tree.h"

namespace foretoken {

// A barrier is an all-reduce of nothing.
inline bool is_all_reduce(CollectiveKind kind) {
  return kind == CollectiveKind::all_reduce || kind == CollectiveKind::barrier;
}

inline bool scatters(CollectiveKind kind) {
  return is_all_reduce(kind) || kind == CollectiveKind::reduce_scatter;
}

inline bool gathers(CollectiveKind kind) {
  return is_all_reduce(kind) || kind == CollectiveKind::all_gather;
}

// Of algorithms that NCCL does not have.
inline bool never_in_nccl(CollectiveKind, const GroupShape&) {
  return false;
}

// Smallest k with 2^k >= n.
inline int64_t ceil_log2(int64_t n) {
  return n <= 1 ? 0 : static_cast<int64_t>(std::bit_width(static_cast<uint64_t>(n - 1)));
}

// InputError where transfers between all pairs of members are more than we care to keep in memory.
void check_pairs_fit(std::string_view algorithm, int64_t members);

// The i-th member on a way through a node that begins at member 0; the way of channel c is shifted by c. Between pairs
// of a mesh it is Walecki's zigzag 0, 1, -1, 2, -2, ..., whose shifts share no link where the members are even in
// number: all ways together use every link once, and a link twice where they are odd.
inline int64_t member_on_way(int64_t i, int64_t members, bool mesh) {
  if (!mesh) return i;
  return (i % 2 == 1 ? (i + 1) / 2 : members - i / 2) % members;
}

// Channels that share the busiest link of a mesh.
inline double channels_per_link(const GroupShape& shape) {
  const bool has_links_of_their_own = shape.fewest_per_node == 1 || (shape.is_even() && shape.most_per_node % 2 == 0);
  return has_links_of_their_own ? 1 : 2;
}

inline std::string not_for(std::string_view algorithm, CollectiveKind kind) {
  return std::string(algorithm) + " has no " + std::string(collective_kind_name(kind));
}

// Whether members of the same number in different nodes hang off the same leaf switch, within a leaf group.
inline bool is_on_rails(const GroupShape& shape) {
  return !shape.rails || shape.most_per_leaf >= shape.nodes_per_leaf;
}

// How far messages between nodes go when each member talks to members of the same number in other nodes.
inline Reach reach_along_rails(const GroupShape& shape) {
  if (shape.nodes == 1) return Reach::node;
  return shape.leaf_groups == 1 && is_on_rails(shape) ? Reach::leaf : Reach::spine;
}

// What goes through the spine of `load.card` when a part of the members of a leaf group sends to another group.
inline double spine_load(const GroupShape& shape, const StageLoad& load, double part) {
  if (load.reach != Reach::spine) return 0;
  return is_on_rails(shape) ? load.card * part : load.card;
}

// The same when members talk across places: cards of different rails meet at the spine only.
inline Reach reach_anywhere(const GroupShape& shape) {
  const bool crosses_rails = shape.rails && shape.most_per_node > 1;
  return shape.nodes > 1 && crosses_rails ? Reach::spine : reach_along_rails(shape);
}

// Most edges of a binary tree are short: of a leaf group's nodes about two have edges that leave it; where there are
// but two groups, and each tree has its own root, one.
inline double short_edges_part(const GroupShape& shape, TreeRoots roots) {
  double edges = 2;
  if (roots == TreeRoots::own && shape.leaf_groups == 2) {
    edges = std::has_single_bit(static_cast<uint64_t>(shape.nodes_per_leaf)) ? 1 : 1.5;
  }
  return std::min(1.0, edges / static_cast<double>(shape.nodes_per_leaf));
}

}  // namespace foretoken
