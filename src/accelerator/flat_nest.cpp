#include "accelerator/flat_nest.h"

#include "accelerator/tile.h"

namespace foretoken {

bool flatten(const Mapping& mapping, int levels, FlatNest& nest) {
  nest.count = 0;
  nest.uneven = 0;
  int filled = 0;
  nest.first[0] = 0;
  for (const Loop& loop : mapping.loops) {
    while (filled < loop.level) nest.first[++filled] = nest.count;
    if (loop.bound == 1) continue;
    if (nest.count == max_flat_loops) return false;
    if (loop.last != loop.bound) nest.uneven |= 1U << loop.dimension;
    nest.loop[nest.count++] = {.level = loop.level,
                               .dimension = loop.dimension,
                               .bound = static_cast<double>(loop.bound),
                               .last = static_cast<double>(loop.last),
                               .spatial = is_spatial(loop)};
  }
  while (filled < levels) nest.first[++filled] = nest.count;
  TileSizes inside;
  inside.fill(1);
  for (int i = nest.count - 1; i >= 0; --i) {
    FlatLoop& loop = nest.loop[i];
    loop.step = inside[loop.dimension];
    inside[loop.dimension] *= loop.bound;
  }
  return true;
}

double compute_cycles(const FlatNest& nest) {
  double cycles = 1;
  for (int i = 0; i < nest.count; ++i) {
    const FlatLoop& loop = nest.loop[i];
    if (!loop.spatial && (nest.uneven >> loop.dimension & 1) == 0) cycles *= loop.bound;
  }
  if (nest.uneven == 0) return cycles;
  for (int d = 0; d < max_problem_dimensions; ++d) {
    if ((nest.uneven >> d & 1) == 0) continue;
    cycles *= true_iterations(nest, d, nest.count, [&](int i) { return !nest.loop[i].spatial; });
  }
  return cycles;
}

}  // namespace foretoken
