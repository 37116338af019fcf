// Symmetric trees as they are kept: every node of one level asks the same question, so a tree is a handful of questions
// and a table of leaves.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace foretoken {

// Trees one after the other.
struct SymmetricTrees {
  static constexpr size_t most_trees = 1024;
  static constexpr int most_levels = 8;  // a leaf's number fits a byte

  std::vector<uint8_t> levels;    // of each tree: one question per level
  std::vector<uint8_t> features;  // asked about
  std::vector<float> thresholds;  // feature > threshold sets the level's bit
  std::vector<int16_t> leaves;    // 2^levels of each tree, by bits, first question lowest

  // Sum over trees of the leaf that the features lead to, question by question. A feature that is not a number is above
  // no threshold.
  int32_t sum(std::span<const float> values) const;

  // What keeps these arrays from being trees over so many features; nothing when all is well.
  struct Flaw {
    const char* array;  // the name of the member; empty where several do not fit together
    const char* expected;
  };
  std::optional<Flaw> flaw(size_t feature_count) const;
};

}  // namespace foretoken
