// Which loops of a mapping make the ranks in which a level stores a tensor.
#pragma once

#include <vector>

#include "accelerator/mapping.h"
#include "accelerator/problem.h"
#include "accelerator/sparse/description.h"

namespace foretoken {

// The next level further in, or out, that keeps the tensor: the compute level, or -1, when there is none.
int level_inside(const Mapping& mapping, int tensor, int level);
int level_outside(const Mapping& mapping, int tensor, int level);

// The ranks of the tile of `tensor` at `level`, outermost first: as many as it has formats there, or one. Outer ranks
// are the loops down to the next level that keeps the tensor, inner ones are the ranks there, for tiles are stored
// ready to be sent: one after the other, with overlaps in each. The last rank ends at words; a rank that finds no loop
// has one coordinate.
std::vector<FiberRank> fiber_ranks(const Problem& problem, const Mapping& mapping, const SparsityDescription& sparsity,
                                   int tensor, int level);

}  // namespace foretoken
