// Symmetric trees laid out for prediction. Every question of a tree sets one bit of its leaf's number, and whether it
// does depends on one feature alone: so the bits that a feature sets in all trees are looked up at once by the interval
// that its value falls into, and joined over the features. (After "QuickScorer", Lucchese et al., SIGIR 2015, which
// does the same for trees that are not symmetric.)
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "kernel/trees/symmetric_trees.h"

namespace foretoken {

class CompiledTrees {
 public:
  CompiledTrees() = default;
  explicit CompiledTrees(const SymmetricTrees& trees);

  // As SymmetricTrees::sum.
  int32_t sum(std::span<const float> features) const;

 private:
  static constexpr size_t block = 64;  // trees looked up together: a cache line of leaf numbers
  struct Column {
    uint16_t feature = 0;
    uint32_t thresholds = 1;  // with infinite ones up to a power of two
    uint32_t first_threshold = 0;
    uint32_t first_row = 0;  // of a block's rows: one per interval between thresholds
  };

  size_t trees_ = 0, rows_ = 0;
  size_t leaves_per_tree_ = 1;
  std::vector<Column> columns_;     // those with most thresholds first
  std::vector<float> thresholds_;   // by column, ascending, then infinite
  std::vector<uint8_t> leaf_bits_;  // [block][row][tree within the block]
  std::vector<int16_t> leaves_;     // [tree][leaf]
};

}  // namespace foretoken
