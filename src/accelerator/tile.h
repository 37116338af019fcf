// Sizes of tiles: how much of each dimension, and of each tensor, the loops from a level inwards cover.
#pragma once

#include <array>

#include "accelerator/mapping.h"
#include "accelerator/problem.h"

namespace foretoken {

using TileSizes = std::array<double, max_problem_dimensions>;

// Of a full tile at `level`; a dimension that no loop further out divides has its true size.
TileSizes tile_at(const Mapping& mapping, const Problem& problem, int level);

double tile_words(const ProblemTensor& tensor, const TileSizes& tile);

}  // namespace foretoken
