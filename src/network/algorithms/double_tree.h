// Two binary trees over the same positions, each for half of a buffer; who is inside one is a leaf of the other.
// (Sanders, Speck and Traff, "Two-tree algorithms for full bandwidth broadcast, reduction and scan", 2009; NCCL 2.4.)
#pragma once

#include <cstdint>
#include <vector>

namespace foretoken {

struct TreeEdge {
  int64_t child = 0, parent = 0;
  int64_t half = 0;  // of the buffer, and the number of its tree
};

// Position 0 is the root of both trees; or each tree has its own root, as in NCCL's all-reduce.
enum class TreeRoots { shared, own };
std::vector<TreeEdge> double_tree(int64_t positions, TreeRoots roots);

// The most that one position sends or gets on the way up, and as much again on the way down: a part of the buffer. With
// roots of their own, two positions send each other a half each way.
double double_tree_load(int64_t positions, TreeRoots roots);

}  // namespace foretoken
