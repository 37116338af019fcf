// The loops of a mapping that run more than once, in fixed arrays, with how far each steps.
#pragma once

#include <array>
#include <cstdint>

#include "accelerator/mapping.h"

namespace foretoken {

constexpr int max_flat_loops = 96;

// A loop that runs more than once, with the size of one of its steps.
struct FlatLoop {
  int level = 0, dimension = 0;
  double bound = 1, last = 1;
  double step = 1;
  bool spatial = false;
};

struct FlatNest {
  int count = 0;
  std::array<FlatLoop, max_flat_loops> loop;
  std::array<int, max_accelerator_levels + 1> first;  // index of the first loop at or inside the level
  uint32_t uneven = 0;                                // dimensions with a remainder
};

// False when there are more than max_flat_loops. `levels`: above the compute level.
bool flatten(const Mapping& mapping, int levels, FlatNest& nest);

// Turns of all loops in time together.
double compute_cycles(const FlatNest& nest);

// How often the loops over a dimension that `counts` picks run, with remainders, among the first `end` loops.
template <typename Picks>
double true_iterations(const FlatNest& nest, int dimension, int end, const Picks& counts) {
  double full = 1, last = 1;
  for (int i = end - 1; i >= 0; --i) {
    const FlatLoop& loop = nest.loop[i];
    if (loop.dimension != dimension) continue;
    if (counts(i)) {
      last = (loop.last - 1) * full + last;
      full *= loop.bound;
    } else if (loop.last > 1) {
      last = full;
    }
  }
  return last;
}

}  // namespace foretoken
