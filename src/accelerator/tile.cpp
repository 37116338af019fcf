#include "accelerator/tile.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <numeric>

namespace foretoken {

namespace {

double rank_extent(const std::vector<ProjectionTerm>& rank, const TileSizes& tile) {
  double extent = 1;
  for (const ProjectionTerm& term : rank) {
    extent += static_cast<double>(term.coefficient) * (tile[term.dimension] - 1);
  }
  return extent;
}

}  // namespace

TileSizes tile_inside(const Mapping& mapping, const Problem& problem, int first_loop) {
  TileSizes tile;
  tile.fill(1);
  for (int i = first_loop; i < std::ssize(mapping.loops); ++i) {
    tile[mapping.loops[i].dimension] *= static_cast<double>(mapping.loops[i].bound);
  }
  for (size_t d = 0; d < problem.dimensions.size(); ++d) {
    tile[d] = std::min(tile[d], static_cast<double>(problem.dimensions[d].size));
  }
  return tile;
}

TileSizes tile_at(const Mapping& mapping, const Problem& problem, int level) {
  int first = 0;
  while (first < std::ssize(mapping.loops) && mapping.loops[first].level < level) ++first;
  return tile_inside(mapping, problem, first);
}

double tile_words(const ProblemTensor& tensor, const TileSizes& tile) {
  double words = 1;
  for (const auto& rank : tensor.ranks) words *= rank_extent(rank, tile);
  return words;
}

std::vector<double> tile_extents(const ProblemTensor& tensor, const TileSizes& tile) {
  std::vector<double> extents;
  for (const auto& rank : tensor.ranks) extents.push_back(rank_extent(rank, tile));
  return extents;
}

// Sums a step of (b, -a) / gcd apart coincide.
double distinct_sums(const Multiples& a, const Multiples& b) {
  const auto divisor =
      static_cast<double>(std::gcd(static_cast<int64_t>(a.coefficient), static_cast<int64_t>(b.coefficient)));
  const double links =
      std::max(0.0, a.size - b.coefficient / divisor) * std::max(0.0, b.size - a.coefficient / divisor);
  return a.size * b.size - links;
}

}  // namespace foretoken
