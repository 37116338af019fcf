#include "accelerator/sparse/density.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <mutex>
#include <shared_mutex>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/portable_math.h"

namespace foretoken {
namespace {

double words_in_extents(std::span<const double> extents) {
  double words = 1;
  for (const double extent : extents) words *= extent;
  return words;
}

// Probability that `drawn` of `all` words, without putting back, miss all of `marked`: C(all - marked, drawn) over
// C(all, drawn), a product of min(drawn, marked) factors.
double miss_probability(double all, double marked, double drawn) {
  if (marked <= 0 || drawn <= 0) return 1;
  if (drawn + marked > all) return 0;
  if (drawn > marked) std::swap(drawn, marked);
  constexpr double least_log = -745;  // exp of less is zero
  if (drawn * portable_log(1 - marked / all) < least_log) return 0;
  const auto factor = [&](double i) { return (all - marked - i) / (all - i); };
  constexpr double exact_terms = 4096;
  if (drawn <= exact_terms) {
    double product = 1;
    for (double i = 0; i < drawn; ++i) product *= factor(i);
    return product;
  }
  // The sum of logarithms by Simpson's rule, half a step around each: the factors change slowly over so many.
  constexpr int panels = 512;
  const double step = drawn / panels;
  double sum = 0;
  for (int i = 0; i < panels; ++i) {
    const double left = i * step - 0.5;
    sum += portable_log(factor(left)) + 4 * portable_log(factor(left + step / 2)) + portable_log(factor(left + step));
  }
  return portable_exp(sum * step / 6);
}

// What was worked out before: searches ask about the same tiles over and over, from several threads.
template <typename Key, typename Value>
class Remembered {
 public:
  template <typename Work>
  Value get(const Key& key, const Work& work) const {
    {
      const std::shared_lock lock(mutex_);
      const auto found = known_.find(key);
      if (found != known_.end()) return found->second;
    }
    const Value value = work();
    const std::unique_lock lock(mutex_);
    known_.emplace(key, value);
    return value;
  }

 private:
  mutable std::shared_mutex mutex_;
  mutable std::map<Key, Value> known_;
};

class UniformDensity : public DensityModel {
 public:
  UniformDensity(double density, double tensor_words)
      : density_(density), all_(tensor_words), nonzeros_(std::round(density * tensor_words)) {}

  double mean_nonzeros(std::span<const double> extents) const override { return words_in_extents(extents) * density_; }
  double most_nonzeros(std::span<const double> extents) const override {
    return std::min(words_in_extents(extents), nonzeros_);
  }
  double empty_probability(std::span<const double> extents) const override {
    const double words = std::min(words_in_extents(extents), all_);
    if (words == 1) return 1 - density_;
    return misses_.get(words, [&] { return miss_probability(all_, nonzeros_, words); });
  }

 private:
  double density_, all_, nonzeros_;
  Remembered<double, double> misses_;
};

class EvenDensity : public DensityModel {
 public:
  explicit EvenDensity(double density) : density_(density) {}

  double mean_nonzeros(std::span<const double> extents) const override { return words_in_extents(extents) * density_; }
  double most_nonzeros(std::span<const double> extents) const override { return std::ceil(mean_nonzeros(extents)); }
  double empty_probability(std::span<const double> extents) const override {
    return std::max(0.0, 1 - mean_nonzeros(extents));
  }

 private:
  double density_;
};

class StructuredDensity : public DensityModel {
 public:
  StructuredDensity(int nonzeros, int block, int rank) : nonzeros_(nonzeros), block_(block), rank_(rank) {}

  double mean_nonzeros(std::span<const double> extents) const override {
    return words_in_extents(extents) * nonzeros_ / block_;
  }
  double most_nonzeros(std::span<const double> extents) const override {
    const double along = extents[rank_];
    const double blocks = std::floor(along / block_);
    return words_in_extents(extents) / along *
           (blocks * nonzeros_ + std::min<double>(nonzeros_, along - blocks * block_));
  }
  double empty_probability(std::span<const double> extents) const override {
    const double along = extents[rank_];
    if (nonzeros_ == 0) return 1;
    if (along >= block_) return 0;
    return portable_pow(miss_probability(block_, nonzeros_, along), words_in_extents(extents) / along);
  }

 private:
  int nonzeros_, block_, rank_;
};

// What the tiles of a grid over a matrix hold.
struct GridCounts {
  double tiles = 0, nonempty = 0, nonzeros = 0, most = 0;
};

// A model that looks at every tile of a matrix which lies in the last two ranks.
class SurveyedDensity : public DensityModel {
 public:
  double mean_nonzeros(std::span<const double> extents) const override {
    const GridCounts counts = survey(extents);
    return counts.nonzeros / counts.tiles * repeats(extents);
  }
  double most_nonzeros(std::span<const double> extents) const override {
    return survey(extents).most * repeats(extents);
  }
  double empty_probability(std::span<const double> extents) const override {
    const GridCounts counts = survey(extents);
    return 1 - counts.nonempty / counts.tiles;
  }

 protected:
  SurveyedDensity(int64_t rows, int64_t columns) : rows_(rows), columns_(columns) {}
  virtual GridCounts grid_counts(int64_t tile_rows, int64_t tile_columns) const = 0;

  int64_t rows_, columns_;

 private:
  static double repeats(std::span<const double> extents) { return words_in_extents(extents.first(extents.size() - 2)); }
  GridCounts survey(std::span<const double> extents) const {
    ensure(extents.size() >= 2, "a matrix has two ranks");
    const auto cut = [](double extent, int64_t side) { return std::min(static_cast<int64_t>(extent), side); };
    const int64_t rows = cut(extents[extents.size() - 2], rows_), columns = cut(extents[extents.size() - 1], columns_);
    return surveys_.get({rows, columns}, [&] { return grid_counts(rows, columns); });
  }

  Remembered<std::pair<int64_t, int64_t>, GridCounts> surveys_;
};

int64_t grid_tiles_across(int64_t side, int64_t tile) {
  return (side + tile - 1) / tile;
}

class BandedDensity : public SurveyedDensity {
 public:
  BandedDensity(int64_t rows, int64_t columns, int64_t half_width)
      : SurveyedDensity(rows, columns), half_width_(half_width) {}

 private:
  // Sum over i < rows of i + shift, held between 0 and most.
  static double clamped_sum(double rows, double shift, double most) {
    const double first = std::clamp(-shift, 0.0, rows);         // from here on above 0
    const double last = std::clamp(most - shift, first, rows);  // from here on `most`
    return (last - first) * (first + last - 1 + 2 * shift) / 2 + (rows - last) * most;
  }
  // Nonzeros in rows and columns before these.
  double before(int64_t row, int64_t column) const {
    const auto rows = static_cast<double>(row), columns = static_cast<double>(column);
    const auto half = static_cast<double>(half_width_);
    return clamped_sum(rows, half + 1, columns) - clamped_sum(rows, -half, columns);
  }
  double nonzeros(int64_t row, int64_t row_end, int64_t column, int64_t column_end) const {
    return before(row_end, column_end) - before(row, column_end) - before(row_end, column) + before(row, column);
  }

  GridCounts grid_counts(int64_t tile_rows, int64_t tile_columns) const override {
    const int64_t across = grid_tiles_across(columns_, tile_columns);
    GridCounts counts{.tiles = static_cast<double>(across) * static_cast<double>(grid_tiles_across(rows_, tile_rows)),
                      .nonzeros = before(rows_, columns_)};
    for (int64_t row = 0; row < rows_; row += tile_rows) {
      const int64_t end = std::min(row + tile_rows, rows_);
      const int64_t first_column = std::max<int64_t>(0, row - half_width_);
      const int64_t last_column = std::min(columns_ - 1, end - 1 + half_width_);
      if (first_column > last_column) break;
      const int64_t first = first_column / tile_columns, last = last_column / tile_columns;
      counts.nonempty += static_cast<double>(last - first + 1);
      // Tiles on the diagonal are the fullest of their row.
      for (const int64_t tile : {row / tile_columns, (end - 1) / tile_columns, (row + end) / 2 / tile_columns}) {
        const int64_t column = std::min(tile, across - 1) * tile_columns;
        counts.most = std::max(counts.most, nonzeros(row, end, column, std::min(column + tile_columns, columns_)));
      }
    }
    return counts;
  }

  int64_t half_width_;
};

class MeasuredDensity : public SurveyedDensity {
 public:
  explicit MeasuredDensity(NonzeroMatrix matrix)
      : SurveyedDensity(matrix.rows, matrix.columns), places_(std::move(matrix.places)) {}

 private:
  GridCounts grid_counts(int64_t tile_rows, int64_t tile_columns) const override {
    const int64_t across = grid_tiles_across(columns_, tile_columns);
    std::vector<int64_t> tiles;
    tiles.reserve(places_.size());
    for (const NonzeroPlace& place : places_) {
      tiles.push_back(place.row / tile_rows * across + place.column / tile_columns);
    }
    std::sort(tiles.begin(), tiles.end());
    GridCounts counts{.tiles = static_cast<double>(across) * static_cast<double>(grid_tiles_across(rows_, tile_rows)),
                      .nonzeros = static_cast<double>(tiles.size())};
    for (size_t i = 0, end = 0; i < tiles.size(); i = end) {
      while (end < tiles.size() && tiles[end] == tiles[i]) ++end;
      ++counts.nonempty;
      counts.most = std::max(counts.most, static_cast<double>(end - i));
    }
    return counts;
  }

  std::vector<NonzeroPlace> places_;
};

}  // namespace

std::unique_ptr<DensityModel> make_dense() {
  return make_even_density(1);
}

std::unique_ptr<DensityModel> make_uniform_density(double density, double tensor_words) {
  ensure(density >= 0 && density <= 1 && tensor_words >= 1, "a density is a share of some words");
  return std::make_unique<UniformDensity>(density, tensor_words);
}

std::unique_ptr<DensityModel> make_even_density(double density) {
  ensure(density >= 0 && density <= 1, "a density is a share");
  return std::make_unique<EvenDensity>(density);
}

std::unique_ptr<DensityModel> make_structured_density(int nonzeros, int block, int rank) {
  ensure(nonzeros >= 0 && nonzeros <= block && block >= 1 && rank >= 0, "a block holds at most its size");
  return std::make_unique<StructuredDensity>(nonzeros, block, rank);
}

std::unique_ptr<DensityModel> make_banded_density(int64_t rows, int64_t columns, int64_t half_width) {
  ensure(rows >= 1 && rows <= max_banded_rows && columns >= 1 && half_width >= 0, "a band lies in a matrix");
  return std::make_unique<BandedDensity>(rows, columns, half_width);
}

std::unique_ptr<DensityModel> make_measured_density(NonzeroMatrix matrix) {
  ensure(matrix.rows >= 1 && matrix.columns >= 1, "a matrix has rows and columns");
  return std::make_unique<MeasuredDensity>(std::move(matrix));
}

}  // namespace foretoken
