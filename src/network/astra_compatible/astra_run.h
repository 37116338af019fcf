// What ASTRA-sim's analytical backends would answer, to the nanosecond, for those who must compare. Not a model of
// ours: see docs/network.md for what it does that hardware does not.
#pragma once

#include <cstdint>
#include <vector>

#include "model/shapes.h"
#include "network/astra_compatible/astra_dimension.h"

namespace foretoken {

struct AstraRun {
  CollectiveKind kind = CollectiveKind::all_reduce;  // all-reduce, all-gather, reduce-scatter or all-to-all
  std::vector<AstraDimension> dimensions;
  int64_t bytes = 0;        // comm_size: of all-gather the input of one NPU, of the others its buffer
  int64_t splits = 1;       // preferred-dataset-splits
  int64_t active = 1;       // active-chunks-per-dimension
  int64_t queues = 1;       // per dimension
  int64_t endpoint_ns = 0;  // endpoint-delay
  double local_memory_gb_per_s = 0;
  bool congestion_aware = false;
};

// InputError for what ASTRA-sim itself would not finish.
AstraTime astra_time(const AstraRun& run);

}  // namespace foretoken
