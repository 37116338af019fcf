#include "kernel/trees/boosted_trees.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <mutex>

#include <fmt/format.h>

#include "base/base64.h"
#include "base/bytes.h"
#include "base/error.h"
#include "kernel/trees/compiled_trees.h"

namespace foretoken {
namespace {

// Compiling takes as long as this many walks from question to question. Programs that ask less often (one step of a
// model) do without.
constexpr int worth_compiling = 64;

int16_t rounded_leaf(double steps) {
  constexpr double largest = 32767;
  return static_cast<int16_t>(std::lround(std::clamp(steps, -largest, largest)));
}

// Thresholds that cut the rows of one feature into about equally full bins.
std::vector<float> bin_edges(std::vector<float> column, int bins) {
  std::sort(column.begin(), column.end());
  std::vector<float> edges;
  for (int i = 1; i < bins; ++i) {
    const size_t at = column.size() * static_cast<size_t>(i) / static_cast<size_t>(bins);
    const float below = at > 0 ? column[at - 1] : column[0];
    const float above = column[at];
    if (below == above) {
      // A value with many rows: cut after it, once.
      const auto next = std::upper_bound(column.begin(), column.end(), below);
      if (next == column.end()) continue;
      const float edge = below + (*next - below) / 2;
      if (edges.empty() || edge > edges.back()) edges.push_back(edge);
    } else {
      const float edge = below + (above - below) / 2;
      if (edges.empty() || edge > edges.back()) edges.push_back(edge);
    }
  }
  return edges;
}

struct Split {
  double gain = -1;
  size_t feature = 0;
  uint8_t bin = 0;  // rows with a bin above this one go right
};

// Grows one tree after the other on binned features.
class Booster {
 public:
  Booster(std::span<const float> values, size_t features, std::span<const float> targets, const BoostSettings& settings,
          double leaf_step)
      : settings_(settings),
        leaf_step_(leaf_step),
        rows_(targets.size()),
        features_(features),
        residual_(targets.begin(), targets.end()) {
    bins_.resize(rows_ * features_);
    std::vector<float> column(rows_);
    for (size_t f = 0; f < features_; ++f) {
      for (size_t r = 0; r < rows_; ++r) column[r] = values[r * features_ + f];
      edges_.push_back(bin_edges(column, settings_.bins));
      for (size_t r = 0; r < rows_; ++r) {
        const auto& edges = edges_.back();
        bins_[r * features_ + f] =
            static_cast<uint8_t>(std::lower_bound(edges.begin(), edges.end(), column[r]) - edges.begin());
      }
    }
    leaf_of_.resize(rows_);
  }

  const std::vector<float>& edges(size_t feature) const { return edges_[feature]; }

  // Questions of the next tree and the leaf values that it settles on; the residual is brought up to date.
  void grow(std::vector<Split>& questions, std::vector<int16_t>& leaves) {
    std::fill(leaf_of_.begin(), leaf_of_.end(), uint16_t{0});
    questions.clear();
    for (int level = 0; level < settings_.depth; ++level) {
      const Split best = best_split(level);
      if (best.gain <= 0) break;
      for (size_t r = 0; r < rows_; ++r) {
        if (bins_[r * features_ + best.feature] > best.bin)
          leaf_of_[r] = static_cast<uint16_t>(leaf_of_[r] | (1U << level));
      }
      questions.push_back(best);
    }
    settle_leaves(size_t{1} << questions.size(), leaves);
  }

 private:
  struct Cell {
    float sum = 0;
    float count = 0;
  };

  Split best_split(int level) {
    const size_t leaves = size_t{1} << level;
    const auto bins = static_cast<size_t>(settings_.bins);
    histogram_.assign(leaves * features_ * bins, Cell{});
    for (size_t r = 0; r < rows_; ++r) {
      const float pull = residual_[r] > 0 ? 1.0F : (residual_[r] < 0 ? -1.0F : 0.0F);
      Cell* row = histogram_.data() + leaf_of_[r] * features_ * bins;
      const uint8_t* bin = bins_.data() + r * features_;
      for (size_t f = 0; f < features_; ++f) {
        Cell& cell = row[f * bins + bin[f]];
        cell.sum += pull;
        cell.count += 1;
      }
    }
    Split best;
    const auto minimum = static_cast<double>(settings_.min_leaf_rows);
    const auto score = [&](double sum, double count) { return sum * sum / (count + minimum); };
    std::vector<double> gains(bins);
    for (size_t f = 0; f < features_; ++f) {
      std::fill(gains.begin(), gains.end(), 0.0);
      for (size_t leaf = 0; leaf < leaves; ++leaf) {
        const Cell* cells = histogram_.data() + (leaf * features_ + f) * bins;
        double sum = 0, count = 0;
        for (size_t b = 0; b < bins; ++b) {
          sum += static_cast<double>(cells[b].sum);
          count += static_cast<double>(cells[b].count);
        }
        if (count == 0) continue;
        const double whole = score(sum, count);
        double left_sum = 0, left_count = 0;
        for (size_t b = 0; b + 1 < bins; ++b) {
          left_sum += static_cast<double>(cells[b].sum);
          left_count += static_cast<double>(cells[b].count);
          gains[b] += score(left_sum, left_count) + score(sum - left_sum, count - left_count) - whole;
        }
      }
      for (size_t b = 0; b < edges_[f].size(); ++b) {
        if (gains[b] > best.gain) best = {.gain = gains[b], .feature = f, .bin = static_cast<uint8_t>(b)};
      }
    }
    return best;
  }

  // Absolute error: a leaf's best constant is the median of its residuals.
  void settle_leaves(size_t count, std::vector<int16_t>& leaves) {
    std::vector<std::vector<float>> members(count);
    for (size_t r = 0; r < rows_; ++r) members[leaf_of_[r]].push_back(residual_[r]);
    leaves.assign(count, 0);
    for (size_t leaf = 0; leaf < count; ++leaf) {
      auto& values = members[leaf];
      if (values.empty()) continue;
      const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
      std::nth_element(values.begin(), middle, values.end());
      const auto rows = static_cast<double>(values.size());
      const double shrink = rows / (rows + static_cast<double>(settings_.min_leaf_rows));
      leaves[leaf] = rounded_leaf(settings_.learning_rate * shrink * static_cast<double>(*middle) / leaf_step_);
    }
    for (size_t r = 0; r < rows_; ++r) residual_[r] -= static_cast<float>(leaf_step_ * leaves[leaf_of_[r]]);
  }

  const BoostSettings& settings_;
  double leaf_step_;
  size_t rows_, features_;
  std::vector<float> residual_;
  std::vector<std::vector<float>> edges_;
  std::vector<uint8_t> bins_;
  std::vector<uint16_t> leaf_of_;
  std::vector<Cell> histogram_;
};

}  // namespace

struct BoostedTrees::Ensemble {
  explicit Ensemble(SymmetricTrees source) : trees(std::move(source)) {}

  int32_t sum(std::span<const float> features) const {
    if (is_compiled.load(std::memory_order_acquire)) return compiled.sum(features);
    if (asked.fetch_add(1, std::memory_order_relaxed) < worth_compiling) return trees.sum(features);
    std::call_once(once, [this] {
      compiled = CompiledTrees(trees);
      is_compiled.store(true, std::memory_order_release);
    });
    return compiled.sum(features);
  }

  SymmetricTrees trees;
  mutable std::atomic<int> asked = 0;
  mutable std::once_flag once;
  mutable CompiledTrees compiled;
  mutable std::atomic<bool> is_compiled = false;
};

BoostedTrees::BoostedTrees() : BoostedTrees(0, {}) {}

BoostedTrees::BoostedTrees(size_t features, SymmetricTrees trees)
    : features_(features), ensemble_(std::make_shared<const Ensemble>(std::move(trees))) {
  ensure(!this->trees().flaw(features), "trees have as many questions and leaves as they say");
}

const SymmetricTrees& BoostedTrees::trees() const {
  return ensemble_->trees;
}

double BoostedTrees::predict(std::span<const float> features) const {
  return leaf_step * ensemble_->sum(features);
}

BoostedTrees fit_boosted_trees(std::span<const float> values, size_t features, std::span<const float> targets,
                               const BoostSettings& settings, const std::function<void(int)>& after_tree) {
  ensure(features > 0 && values.size() == targets.size() * features, "one row of features per target");
  ensure(settings.bins >= 2 && settings.bins <= 256 && settings.depth >= 1 &&
             settings.depth <= SymmetricTrees::most_levels && features < 256,
         "bins, features and levels fit a byte");
  SymmetricTrees trees;
  if (targets.empty()) return {features, trees};
  Booster booster(values, features, targets, settings, BoostedTrees::leaf_step);
  std::vector<Split> questions;
  std::vector<int16_t> leaves;
  for (int i = 0; i < settings.trees; ++i) {
    booster.grow(questions, leaves);
    trees.levels.push_back(static_cast<uint8_t>(questions.size()));
    for (const Split& question : questions) {
      trees.features.push_back(static_cast<uint8_t>(question.feature));
      trees.thresholds.push_back(booster.edges(question.feature)[question.bin]);
    }
    trees.leaves.insert(trees.leaves.end(), leaves.begin(), leaves.end());
    if (after_tree) after_tree(i + 1);
  }
  return {features, std::move(trees)};
}

Json BoostedTrees::to_json() const {
  ByteWriter thresholds, leaves;
  for (const float threshold : trees().thresholds) thresholds.put(threshold);
  for (const int16_t leaf : trees().leaves) leaves.put(leaf);
  return Json::object({{"feature_count", features_},
                       {"levels_u8", base64(trees().levels)},
                       {"features_u8", base64(trees().features)},
                       {"thresholds_f32", base64(thresholds.bytes())},
                       {"leaves_i16", base64(leaves.bytes())}});
}

BoostedTrees BoostedTrees::from_json(const JsonView& view) {
  const auto feature_count = static_cast<size_t>(view.at("feature_count").integer({.least = 0, .most = 255}));
  const auto bytes = [&](const char* key, size_t word) {
    const JsonView packed = view.at(key);
    auto decoded = from_base64(packed.value().string());
    if (!decoded || decoded->size() % word != 0) packed.fail(fmt::format("base64 text of {}-byte numbers", word));
    return std::move(*decoded);
  };
  SymmetricTrees trees{.levels = bytes("levels_u8", 1), .features = bytes("features_u8", 1)};
  const std::vector<uint8_t> thresholds = bytes("thresholds_f32", 4), leaves = bytes("leaves_i16", 2);
  for (ByteReader reader(thresholds); reader.left() > 0;) trees.thresholds.push_back(reader.get<float>());
  for (ByteReader reader(leaves); reader.left() > 0;) trees.leaves.push_back(reader.get<int16_t>());
  if (const auto flaw = trees.flaw(feature_count)) {
    const std::string_view array = flaw->array;
    if (array.empty()) view.fail(flaw->expected);
    view.at(array == "thresholds" ? "thresholds_f32" : fmt::format("{}_u8", array)).fail(flaw->expected);
  }
  return {feature_count, std::move(trees)};
}

}  // namespace foretoken
