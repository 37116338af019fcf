// Collectives over a link that somebody measured or gave, instead of a sweep of the system.
#pragma once

#include "base/estimate.h"
#include "base/units.h"
#include "model/shapes.h"

namespace foretoken {

// Between neighbours of a ring: what each hop takes, and bytes one way.
struct RingLink {
  Seconds latency;
  BytesPerSecond bandwidth;
};

// 2(n-1) hops of an n-th of the buffer for an all-reduce, n-1 for gathers, scatters and exchanges; one hop with all of
// it for a send; n-1 hops that overlap for a broadcast. (Patarasuk and Yuan, "Bandwidth optimal all-reduce algorithms
// for clusters of workstations", 2009.) The interval of a quarter less to a third more is assumed: real algorithms and
// protocols differ from one ring.
Estimate ring_collective_seconds(const CollectiveShape& collective, const RingLink& link);

}  // namespace foretoken
