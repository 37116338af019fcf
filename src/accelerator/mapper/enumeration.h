// Every mapping of a small space: branch and bound over bounds, then orders that differ, then tensors kept.
#pragma once

#include <optional>

#include "accelerator/mapper/annealing.h"

namespace foretoken {

struct EnumerationOptions {
  int64_t most_tries = 0;
  bool frontier = false;
};

struct Enumeration {
  std::optional<ScoredPoint> best;
  MappingFrontier frontier;
  int64_t tried = 0, evaluations = 0;
  bool complete = true;  // not ended by the clock
};

// Nothing when the space is larger than `most_tries` or has remainders, which are too many to write down.
std::optional<Enumeration> enumerate_mappings(const MappingSpace& space, const MappingScorer& scorer,
                                              const EnumerationOptions& options, const SearchClock& clock);

}  // namespace foretoken
