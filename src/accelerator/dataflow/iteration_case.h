// The kinds of steps a level of clusters goes through: every combination of the first, the steady and the last position
// along each dimension, with the number of steps of that kind.
#pragma once

#include <cstdint>
#include <vector>

#include "accelerator/dataflow/cluster_level.h"

namespace foretoken {

enum class StepPosition : uint8_t { first, steady, last };

// Where a step stands along one dimension.
struct DimStep {
  StepPosition position = StepPosition::first;
  int64_t steps = 1;
  bool holds_all = false;          // the only step: the dimension is unrolled
  bool is_partial = false;         // the tile (or, spatially, some unit) sticks out over the end
  bool last_unit_partial = false;  // spatially: the last unit at work has less to do than the others
};

struct IterationCase {
  PerDim<DimStep> along;  // of two maps of a dimension in one level, the inner one counts
  int64_t steps = 1;

  bool is_first_step() const;
};

// All cases of `level` when it is given `sizes`. The first is the first step of all; the rest come in the order in
// which MAESTRO visits them, which shows in its buffer sizes.
std::vector<IterationCase> iteration_cases(const ClusterLevel& level, const DimSizes& sizes, DataflowReading reading);

}  // namespace foretoken
