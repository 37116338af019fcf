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

}  // namespace foretoken::ring_link_test
