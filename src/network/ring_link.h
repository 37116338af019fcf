// Collectives over a link that somebody measured or gave, or over PCIe, where hosts differ.
#pragma once

#include <cstdint>
#include <optional>

#include "base/estimate.h"
#include "base/units.h"
#include "hardware/node.h"
#include "model/shapes.h"

namespace foretoken {

// Between neighbours of a ring: what each hop takes, and bytes one way.
struct RingLink {
  Seconds latency;
  BytesPerSecond bandwidth;
};

// What is not known of a link: the usual one, and the fastest and slowest of 90% of hosts.
struct RingRange {
  RingLink usual, fastest, slowest;

  static RingRange exactly(const RingLink& link) { return {link, link, link}; }
};

// 2(n-1) hops of an n-th of the buffer for an all-reduce, n-1 for gathers, scatters and exchanges; one hop with all of
// it for a send; n-1 hops that overlap for a broadcast. (Patarasuk and Yuan, "Bandwidth optimal all-reduce algorithms
// for clusters of workstations", 2009.) The interval is at least a quarter less to a third more: rings with the latency
// and bandwidth of the same box were 0.6 to 1.2 of what NCCL took on L40S and RTX PRO 6000 (90% of sizes from 4 KiB).
Estimate ring_collective_seconds(const CollectiveShape& collective, const RingRange& link);
Estimate ring_collective_seconds(const CollectiveShape& collective, const RingLink& link);

// A ring of so many devices over PCIe without NVLink. `slot`: the sheet's rate of a slot, one direction. With peer
// access devices write to each other; without, every byte goes through the host's memory (NCCL's SHM). Nothing = not
// known: in the middle. Engines keep their own all-reduce kernels off there, so that NCCL runs all collectives.
RingRange pcie_ring(BytesPerSecond slot, std::optional<bool> peer_access, int64_t ranks);

// Somebody gave bandwidth or latency of its rings: what was measured on such nodes does not count then.
bool has_given_ring(const Node& node);

// A ring of so many of its devices: as given, else over PCIe or NVLink.
RingRange ring_inside(const Node& node, int64_t ranks);

}  // namespace foretoken
