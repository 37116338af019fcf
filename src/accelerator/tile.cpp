#include "accelerator/tile.h"

#include <algorithm>

namespace foretoken {

TileSizes tile_at(const Mapping& mapping, const Problem& problem, int level) {
  TileSizes tile;
  tile.fill(1);
  for (const Loop& loop : mapping.loops) {
    if (loop.level >= level) tile[loop.dimension] *= static_cast<double>(loop.bound);
  }
  for (size_t d = 0; d < problem.dimensions.size(); ++d) {
    tile[d] = std::min(tile[d], static_cast<double>(problem.dimensions[d].size));
  }
  return tile;
}

double tile_words(const ProblemTensor& tensor, const TileSizes& tile) {
  double words = 1;
  for (const auto& rank : tensor.ranks) {
    double extent = 1;
    for (const ProjectionTerm& term : rank) {
      extent += static_cast<double>(term.coefficient) * (tile[term.dimension] - 1);
    }
    words *= extent;
  }
  return words;
}

}  // namespace foretoken
