#include "accelerator/mapping.h"

#include <algorithm>

namespace foretoken {

void set_remainders(Mapping& mapping, const Problem& problem) {
  for (size_t d = 0; d < problem.dimensions.size(); ++d) {
    const int64_t size = problem.dimensions[d].size;
    double full = 1;  // covered by the loops further in
    for (auto loop = mapping.loops.rbegin(); loop != mapping.loops.rend(); ++loop) {
      if (loop->dimension != static_cast<int>(d)) continue;
      // Digits of size - 1 in the mixed radix of the bounds.
      const double digit =
          std::fmod(std::floor(static_cast<double>(size - 1) / full), static_cast<double>(loop->bound));
      loop->last = static_cast<int64_t>(digit) + 1;
      full *= static_cast<double>(loop->bound);
    }
    if (full >= static_cast<double>(size)) continue;
    for (Loop& loop : mapping.loops) {
      if (loop.dimension == static_cast<int>(d)) loop.last = loop.bound;
    }
  }
}

}  // namespace foretoken
