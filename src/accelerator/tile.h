// Sizes of tiles: how much of each dimension, and of each tensor, the loops from a level inwards cover.
#pragma once

#include <array>
#include <vector>

#include "accelerator/mapping.h"
#include "accelerator/problem.h"

namespace foretoken {

using TileSizes = std::array<double, max_problem_dimensions>;

// Of a full tile at `level`; a dimension that no loop further out divides has its true size.
TileSizes tile_at(const Mapping& mapping, const Problem& problem, int level);

// What one turn of the loop before `first_loop` covers: all loops from that index on.
TileSizes tile_inside(const Mapping& mapping, const Problem& problem, int first_loop);

double tile_words(const ProblemTensor& tensor, const TileSizes& tile);
// The tile's extent along each rank of the tensor.
std::vector<double> tile_extents(const ProblemTensor& tensor, const TileSizes& tile);

// The values coefficient x i for i < size; both are whole.
struct Multiples {
  double coefficient = 1, size = 1;
};
// Different sums of one value of each: fewer than the box from the first to the last holds where both have holes.
double distinct_sums(const Multiples& a, const Multiples& b);

}  // namespace foretoken
