#include "network/algorithms/double_tree.h"

#include <cstddef>

namespace foretoken {
namespace {

// The parent of position p among n in NCCL's binary tree: odd positions are leaves, position 0 is the root.
int64_t parent(int64_t position, int64_t positions) {
  const int64_t bit = position & -position;
  const int64_t above = (position ^ bit) | (bit << 1);
  return above < positions ? above : position ^ bit;
}

// Where a member sits in the second tree: positions of even and odd number change, but for a shared root.
int64_t position_in_second(int64_t position, int64_t positions, TreeRoots roots) {
  const bool is_odd = positions % 2 == 1;
  if (roots == TreeRoots::own) return is_odd ? (position + positions - 1) % positions : positions - 1 - position;
  if (position == 0) return 0;
  return is_odd ? positions - position : position % (positions - 1) + 1;
}

}  // namespace

std::vector<TreeEdge> double_tree(int64_t positions, TreeRoots roots) {
  std::vector<TreeEdge> edges;
  for (int64_t half = 0; half < 2; ++half) {
    std::vector<int64_t> member_at(static_cast<size_t>(positions));
    for (int64_t p = 0; p < positions; ++p) {
      member_at[static_cast<size_t>(half == 0 ? p : position_in_second(p, positions, roots))] = p;
    }
    for (int64_t p = 1; p < positions; ++p) {
      edges.push_back({.child = member_at[static_cast<size_t>(p)],
                       .parent = member_at[static_cast<size_t>(parent(p, positions))],
                       .half = half});
    }
  }
  return edges;
}

double double_tree_load(int64_t positions, TreeRoots roots) {
  return roots == TreeRoots::own && positions == 2 ? 0.5 : 1;
}

}  // namespace foretoken
