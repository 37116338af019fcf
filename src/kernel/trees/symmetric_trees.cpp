#include "kernel/trees/symmetric_trees.h"

#include <algorithm>
#include <cmath>

namespace foretoken {

int32_t SymmetricTrees::sum(std::span<const float> values) const {
  int32_t total = 0;
  const uint8_t* feature = features.data();
  const float* threshold = thresholds.data();
  const int16_t* leaf = leaves.data();
  for (const uint8_t depth : levels) {
    size_t bits = 0;
    for (size_t level = 0; level < depth; ++level)
      bits |= static_cast<size_t>(values[*feature++] > *threshold++) << level;
    total += leaf[bits];
    leaf += size_t{1} << depth;
  }
  return total;
}

std::optional<SymmetricTrees::Flaw> SymmetricTrees::flaw(size_t feature_count) const {
  if (levels.size() > most_trees) return Flaw{"levels", "at most 1024 trees"};
  size_t questions = 0, leaf_count = 0;
  for (const uint8_t depth : levels) {
    if (depth > most_levels) return Flaw{"levels", "at most 8 levels in a tree"};
    questions += depth;
    leaf_count += size_t{1} << depth;
  }
  if (features.size() != questions || thresholds.size() != questions || leaves.size() != leaf_count)
    return Flaw{"", "as many questions, thresholds and leaves as the trees have"};
  if (std::any_of(features.begin(), features.end(), [&](uint8_t feature) { return feature >= feature_count; }))
    return Flaw{"features", "features below feature_count"};
  if (!std::all_of(thresholds.begin(), thresholds.end(), [](float threshold) { return std::isfinite(threshold); }))
    return Flaw{"thresholds", "finite numbers"};
  return std::nullopt;
}

}  // namespace foretoken
