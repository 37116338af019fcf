// What a block of a prompt holds depends on all before it: a chain of the numbers that a trace gives for its blocks.
#pragma once

#include <cstdint>

#include "base/random.h"

namespace foretoken {

// The same for the same numbers in the same order.
inline uint64_t chained(uint64_t chain, uint64_t next) {
  uint64_t state = chain ^ (next * 0x9e3779b97f4a7c15U);
  return splitmix64(state);
}

}  // namespace foretoken
