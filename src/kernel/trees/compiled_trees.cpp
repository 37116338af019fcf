#include "kernel/trees/compiled_trees.h"

#include <algorithm>
#include <array>
#include <bit>
#include <limits>
#include <map>

#include "base/error.h"

namespace foretoken {
namespace {

constexpr size_t columns_at_once = 4;
constexpr size_t most_columns = 256;

}  // namespace

CompiledTrees::CompiledTrees(const SymmetricTrees& trees) : trees_(trees.levels.size()) {
  ensure(!trees.flaw(most_columns), "trees have as many questions and leaves as they say");
  std::map<uint8_t, std::vector<float>> asked;
  for (size_t i = 0; i < trees.features.size(); ++i) asked[trees.features[i]].push_back(trees.thresholds[i]);
  const auto deepest = std::max_element(trees.levels.begin(), trees.levels.end());
  leaves_per_tree_ = deepest == trees.levels.end() ? 1 : size_t{1} << *deepest;
  std::array<const Column*, most_columns> column_of{};
  for (auto& [feature, thresholds] : asked) {
    std::sort(thresholds.begin(), thresholds.end());
    thresholds.erase(std::unique(thresholds.begin(), thresholds.end()), thresholds.end());
    columns_.push_back({.feature = feature, .thresholds = static_cast<uint32_t>(std::bit_ceil(thresholds.size() + 1))});
  }
  std::stable_sort(columns_.begin(), columns_.end(),
                   [](const Column& a, const Column& b) { return a.thresholds > b.thresholds; });
  for (Column& column : columns_) {
    const std::vector<float>& thresholds = asked[static_cast<uint8_t>(column.feature)];
    column_of[column.feature] = &column;
    column.first_row = static_cast<uint32_t>(rows_);
    column.first_threshold = static_cast<uint32_t>(thresholds_.size());
    rows_ += thresholds.size() + 1;
    thresholds_.insert(thresholds_.end(), thresholds.begin(), thresholds.end());
    thresholds_.resize(column.first_threshold + column.thresholds, std::numeric_limits<float>::infinity());
  }
  const size_t blocks = (trees_ + block - 1) / block;
  leaf_bits_.assign(blocks * rows_ * block, 0);
  leaves_.assign(blocks * block * leaves_per_tree_, 0);
  size_t question = 0;
  auto leaf = trees.leaves.begin();
  for (size_t t = 0; t < trees_; ++t) {
    const auto next_leaf = leaf + (std::ptrdiff_t{1} << trees.levels[t]);
    std::copy(leaf, next_leaf, leaves_.begin() + static_cast<std::ptrdiff_t>(t * leaves_per_tree_));
    leaf = next_leaf;
    for (size_t level = 0; level < trees.levels[t]; ++level, ++question) {
      const Column& column = *column_of[trees.features[question]];
      const std::vector<float>& thresholds = asked[trees.features[question]];
      const auto own = std::lower_bound(thresholds.begin(), thresholds.end(), trees.thresholds[question]);
      // Above a threshold from this question's on, and so above this question's.
      for (auto i = static_cast<size_t>(own - thresholds.begin()); i < thresholds.size(); ++i) {
        uint8_t& bits = leaf_bits_[((t / block) * rows_ + column.first_row + i + 1) * block + t % block];
        bits = static_cast<uint8_t>(bits | 1U << level);
      }
    }
  }
}

int32_t CompiledTrees::sum(std::span<const float> features) const {
  // The row of each column: as many thresholds lie below the value. All columns are searched step by step together, so
  // that the processor need not wait for one comparison before the next.
  std::array<uint32_t, most_columns + columns_at_once> rows;  // NOLINT: filled as far as it is read
  std::array<float, most_columns> values;                     // NOLINT
  size_t columns = columns_.size(), searched = 0;
  for (uint32_t half = columns > 0 ? columns_[0].thresholds / 2 : 0; half > 0; half /= 2) {
    for (; searched < columns && columns_[searched].thresholds > half; ++searched) {
      values[searched] = features[columns_[searched].feature];
      rows[searched] = columns_[searched].first_threshold;
    }
    const float* thresholds = thresholds_.data() + half - 1;
    for (size_t c = 0; c < searched; ++c)
      rows[c] += half * static_cast<uint32_t>(thresholds[rows[c]] < values[c]);  // a product: no branch to guess
  }
  for (size_t c = 0; c < columns; ++c) rows[c] += columns_[c].first_row - columns_[c].first_threshold;
  // Row 0 is the first column's below all thresholds, where no bit is set.
  while (columns % columns_at_once != 0) rows[columns++] = 0;

  int32_t total = 0;
  for (size_t first = 0; first < trees_; first += block) {
    const uint8_t* bits = leaf_bits_.data() + first * rows_;
    std::array<uint8_t, block> leaf{};
    for (size_t c = 0; c < columns; c += columns_at_once) {
      const uint8_t* a = bits + rows[c] * block;
      const uint8_t* b = bits + rows[c + 1] * block;
      const uint8_t* d = bits + rows[c + 2] * block;
      const uint8_t* e = bits + rows[c + 3] * block;
      for (size_t i = 0; i < block; ++i) leaf[i] = static_cast<uint8_t>(leaf[i] | a[i] | b[i] | d[i] | e[i]);
    }
    const int16_t* leaves = leaves_.data() + first * leaves_per_tree_;
    for (size_t i = 0; i < block; ++i) total += leaves[i * leaves_per_tree_ + leaf[i]];
  }
  return total;
}

}  // namespace foretoken
