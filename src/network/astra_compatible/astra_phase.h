// One phase: a collective of one chunk on one dimension.
#pragma once

#include "model/shapes.h"
#include "network/astra_compatible/astra_dimension.h"

namespace foretoken {

// What a phase needs of the run besides its dimension.
struct AstraEndpoint {
  int64_t delay_ns = 0;
  double local_memory_gb_per_s = 0;
  bool congestion_aware = false;
};

AstraTime astra_phase_time(CollectiveKind kind, const AstraDimension& dimension, int64_t chunk_bytes,
                           const AstraEndpoint& endpoint);

}  // namespace foretoken
