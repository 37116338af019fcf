// How a problem runs on an accelerator: loops over its dimensions at each level, and which tensors each level keeps.
#pragma once

#include <cstdint>
#include <vector>

#include "accelerator/architecture.h"
#include "accelerator/problem.h"

namespace foretoken {

enum class LoopKind : uint8_t { temporal, spatial_x, spatial_y };

struct Loop {
  int level = 0;  // a level's tile is what its own loops and those further in cover
  int dimension = 0;
  int64_t bound = 1;
  int64_t last = 1;  // bound in the last iteration of all loops further out over the dimension; less = a remainder
  LoopKind kind = LoopKind::temporal;
};

struct Mapping {
  std::vector<Loop> loops;     // outermost first, so in order of their levels
  std::vector<uint32_t> kept;  // by level above the compute level: a bit for each tensor
};

inline bool is_spatial(const Loop& loop) {
  return loop.kind != LoopKind::temporal;
}

// Gives loops without a remainder the ones their dimension's size asks for, from the outermost to the innermost, as
// when only the factors are written: bounds 13 and 8 over 100 make 13 tiles of 8, the last one of 4. Bounds whose
// product is too small stay as they are, for mapping_faults to name.
void set_remainders(Mapping& mapping, const Problem& problem);

}  // namespace foretoken
