#include "network/ring_link.h"

#include "network/transfer/collective.h"

namespace foretoken {

Estimate ring_collective_seconds(const CollectiveShape& collective, const RingLink& link) {
  if (collective.ranks <= 1) return exactly(0);
  auto hops = static_cast<double>(collective.ranks - 1);
  if (collective.kind == CollectiveKind::all_reduce || collective.kind == CollectiveKind::barrier) hops *= 2;
  if (collective.kind == CollectiveKind::send_recv) hops = 1;
  const double seconds = (hops * link.latency + wire_bytes(collective) / link.bandwidth).value();
  return {.value = seconds, .low = 0.75 * seconds, .high = seconds / 0.75, .kind = Confidence::extrapolated};
}

}  // namespace foretoken
