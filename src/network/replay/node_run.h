// When a node of a replayed workload ran.
#pragma once

#include "base/simulated_time.h"

namespace foretoken {

// A collective runs from this rank's arrival, a receive from when it is posted.
struct NodeRun {
  Picoseconds start = -1;
  Picoseconds finish = -1;
};

}  // namespace foretoken
