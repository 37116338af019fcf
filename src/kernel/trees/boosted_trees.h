// Gradient-boosted symmetric trees: every node of one level asks the same question, so a tree is a handful of
// comparisons and one table look-up. Used to learn what the physics leaves over. (Symmetric trees: Prokhorenkova et
// al., "CatBoost", NeurIPS 2018; absolute-error boosting with leaf medians: Friedman, "Greedy function approximation",
// 2001.)
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "base/json.h"
#include "kernel/trees/symmetric_trees.h"

namespace foretoken {

struct BoostSettings {
  int trees = 200;
  int depth = 6;  // up to 2^depth leaves; at most SymmetricTrees::most_levels
  double learning_rate = 0.1;
  int min_leaf_rows = 10;  // smaller leaves are shrunk towards zero: value * rows / (rows + min_leaf_rows)
  int bins = 64;           // candidate thresholds per feature
};

class BoostedTrees {
 public:
  // Predicts a constant 0.
  BoostedTrees();
  // `trees` must be without a flaw.
  BoostedTrees(size_t features, SymmetricTrees trees);

  size_t features() const { return features_; }
  bool empty() const { return trees().levels.empty(); }
  const SymmetricTrees& trees() const;
  // Thread-safe.
  double predict(std::span<const float> features) const;

  // Leaves are log ratios kept as 16-bit steps of this size: sums are exact, and a file loses nothing.
  static constexpr double leaf_step = 1e-4;

  // Packed: questions, thresholds and leaves as base64 of little-endian numbers, trees one after the other.
  Json to_json() const;
  static BoostedTrees from_json(const JsonView& view);  // InputError for anything inconsistent

 private:
  struct Ensemble;
  size_t features_ = 0;
  std::shared_ptr<const Ensemble> ensemble_;  // shared by copies, which are the same trees
};

// `values` holds rows of `features` numbers, one after the other; `targets` one number per row. Minimises the mean
// absolute error. Deterministic. `after_tree` (may be empty) is told each finished tree, for progress.
BoostedTrees fit_boosted_trees(std::span<const float> values, size_t features, std::span<const float> targets,
                               const BoostSettings& settings, const std::function<void(int)>& after_tree = {});

}  // namespace foretoken
