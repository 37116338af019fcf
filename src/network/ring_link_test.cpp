#include "network/ring_link.h"

#include <gtest/gtest.h>

namespace foretoken::ring_link_test {

TEST(RingLink, a_collective_takes_its_hops_and_its_bytes) {
  const RingLink link{.latency = microseconds(10), .bandwidth = BytesPerSecond(20e9)};
  const auto us = [&](CollectiveKind kind, int64_t ranks) {
    return ring_collective_seconds({.kind = kind, .axis = ParallelAxis::tensor, .ranks = ranks, .bytes = 8e6}, link)
               .value *
           1e6;
  };
  EXPECT_NEAR(us(CollectiveKind::all_reduce, 2), 2 * (10 + 200), 1e-6);
  EXPECT_NEAR(us(CollectiveKind::all_reduce, 4), 6 * (10 + 100), 1e-6);
  EXPECT_NEAR(us(CollectiveKind::all_gather, 4), 3 * (10 + 100), 1e-6);
  EXPECT_NEAR(us(CollectiveKind::reduce_scatter, 4), 3 * (10 + 100), 1e-6);
  EXPECT_NEAR(us(CollectiveKind::send_recv, 2), 10 + 400, 1e-6);
  EXPECT_EQ(us(CollectiveKind::all_reduce, 1), 0);
}

TEST(RingLink, what_is_not_known_of_a_host_widens_the_interval) {
  const CollectiveShape shape{.kind = CollectiveKind::all_reduce, .ranks = 4, .bytes = 1e6};
  const RingRange pcie = pcie_ring(BytesPerSecond(32e9), std::nullopt, shape.ranks);
  const Estimate unknown = ring_collective_seconds(shape, pcie), given = ring_collective_seconds(shape, pcie.usual);
  EXPECT_EQ(unknown.value, given.value);
  EXPECT_GT(unknown.high / unknown.low, 5);
  EXPECT_LT(given.high / given.low, 1.8);
}

TEST(RingLink, peer_access_is_faster_than_the_hosts_memory_and_all_hosts_lie_in_the_range) {
  for (const double slot : {16e9, 32e9, 64e9}) {
    for (const int64_t ranks : {2, 4, 8}) {
      const auto usual = [&](std::optional<bool> peers) {
        const RingRange ring = pcie_ring(BytesPerSecond(slot), peers, ranks);
        EXPECT_LT(ring.slowest.bandwidth, ring.usual.bandwidth);
        EXPECT_LT(ring.usual.bandwidth, ring.fastest.bandwidth);
        EXPECT_LT(ring.fastest.bandwidth.value(), slot);
        return ring.usual.bandwidth.value();
      };
      EXPECT_LT(usual(false), usual(std::nullopt));
      EXPECT_LT(usual(std::nullopt), usual(true));
    }
  }
}

// NCCL's large messages: two L40S 20 GB/s, four 5.2, eight 1.5; two RTX PRO 6000 36 GB/s, eight 24 (aiconfigurator's
// sweeps); the same cards in a workstation without peer access 15.
TEST(RingLink, measured_boxes_lie_in_the_range_of_pcie_hosts) {
  const auto holds = [](double slot, int64_t ranks, double measured) {
    const RingRange ring = pcie_ring(BytesPerSecond(slot), std::nullopt, ranks);
    return ring.slowest.bandwidth.value() <= measured && measured <= ring.fastest.bandwidth.value();
  };
  EXPECT_TRUE(holds(32e9, 2, 20e9));
  EXPECT_TRUE(holds(32e9, 4, 5.2e9));
  EXPECT_TRUE(holds(32e9, 8, 1.5e9));
  EXPECT_TRUE(holds(64e9, 2, 36e9));
  EXPECT_TRUE(holds(64e9, 8, 24e9));
  EXPECT_TRUE(holds(64e9, 2, 15e9));
}

}  // namespace foretoken::ring_link_test
