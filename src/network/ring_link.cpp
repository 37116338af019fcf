#include "network/ring_link.h"

#include <algorithm>
#include <cmath>

#include "network/transfer/collective.h"

namespace foretoken {
namespace {

double ring_seconds(const CollectiveShape& collective, const RingLink& link) {
  auto hops = static_cast<double>(collective.ranks - 1);
  if (collective.kind == CollectiveKind::all_reduce || collective.kind == CollectiveKind::barrier) hops *= 2;
  if (collective.kind == CollectiveKind::send_recv) hops = 1;
  return (hops * link.latency + wire_bytes(collective) / link.bandwidth).value();
}

}  // namespace

Estimate ring_collective_seconds(const CollectiveShape& collective, const RingRange& link) {
  if (collective.ranks <= 1) return exactly(0);
  constexpr double ring_error = 0.75;
  const double seconds = ring_seconds(collective, link.usual);
  return {.value = seconds,
          .low = std::min(ring_error * seconds, ring_seconds(collective, link.fastest)),
          .high = std::max(seconds / ring_error, ring_seconds(collective, link.slowest)),
          .kind = Confidence::extrapolated};
}

Estimate ring_collective_seconds(const CollectiveShape& collective, const RingLink& link) {
  return ring_collective_seconds(collective, RingRange::exactly(link));
}

RingRange pcie_ring(BytesPerSecond slot, std::optional<bool> peer_access, int64_t ranks) {
  // NCCL reaches 0.60 to 0.63 of the slot's rate between two L40S or two RTX PRO 6000 with peer access, and 0.74 to
  // 0.76 between two pairs of A100 or H100 behind PCIe switches. Through the host's memory, two RTX PRO 6000 reach 15
  // GB/s.
  const double with_peers = 0.62 * slot.value(), best = 0.75 * slot.value();
  const double through_host = std::min(0.4 * slot.value(), 15e9);
  double usual = std::sqrt(with_peers * through_host);
  if (peer_access) usual = *peer_access ? with_peers : through_host;
  // From three devices on, host bridges are shared: a box of L40S has 0.16 of a slot among four and 0.04 among eight.
  double worst = 0.6 * through_host;
  if (ranks > 2) worst = std::min(worst, (ranks > 4 ? 0.045 : 0.16) * slot.value());
  const double fastest = peer_access && !*peer_access ? 1.3 * through_host : best;
  // Of a hop as engines see it, launch included: 10 to 20 us; NCCL's own benchmark has 2 to 4.
  return {.usual = {microseconds(10), BytesPerSecond(usual)},
          .fastest = {microseconds(2.5), BytesPerSecond(fastest)},
          .slowest = {microseconds(20), BytesPerSecond(worst)}};
}

bool has_given_ring(const Node& node) {
  return node.fabric.ring_bandwidth || node.fabric.ring_latency;
}

RingRange ring_inside(const Node& node, int64_t ranks) {
  const NodeFabric& fabric = node.fabric;
  RingRange ring;
  if (fabric.kind == NodeFabricKind::pcie) {
    const auto& peers = fabric.peer_access;
    ring = pcie_ring(fabric.bandwidth.value, peers ? std::optional(peers->value) : std::nullopt, ranks);
  } else {
    // Of NVLink where only one of the two was given: start-up of NCCL over the hops of a ring.
    const BytesPerSecond rate = fabric_of(node.device).per_device;
    ring = {.usual = {microseconds(3), rate * 0.7},
            .fastest = {microseconds(1), rate * 0.8},
            .slowest = {microseconds(6), rate * 0.5}};
  }
  for (RingLink* one : {&ring.usual, &ring.fastest, &ring.slowest}) {
    if (fabric.ring_bandwidth) one->bandwidth = fabric.ring_bandwidth->value;
    if (fabric.ring_latency) one->latency = fabric.ring_latency->value;
  }
  return ring;
}

}  // namespace foretoken
