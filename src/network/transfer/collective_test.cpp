#include "network/transfer/collective.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace foretoken::collective_test {

CollectiveShape collective(CollectiveKind kind, int64_t ranks, double bytes) {
  return {.kind = kind, .axis = ParallelAxis::tensor, .ranks = ranks, .bytes = bytes};
}

TEST(Collective, an_all_reduce_moves_as_much_as_a_reduce_scatter_and_an_all_gather) {
  for (int64_t ranks = 1; ranks <= 64; ranks *= 2) {
    const double reduce_scatter = wire_bytes(collective(CollectiveKind::reduce_scatter, ranks, 4096)).value();
    const double all_gather = wire_bytes(collective(CollectiveKind::all_gather, ranks, 4096)).value();
    EXPECT_DOUBLE_EQ(wire_bytes(collective(CollectiveKind::all_reduce, ranks, 4096)).value(),
                     reduce_scatter + all_gather);
  }
}

TEST(Collective, a_ring_of_eight_sends_seven_quarters_of_the_buffer) {
  EXPECT_DOUBLE_EQ(wire_bytes(collective(CollectiveKind::all_reduce, 8, 1e6)).value(), 1.75e6);
}

TEST(Collective, one_rank_alone_sends_nothing_and_takes_no_time) {
  const Fabric fabric{.per_device = BytesPerSecond(450e9)};
  EXPECT_EQ(collective_seconds(collective(CollectiveKind::all_reduce, 1, 1e9), fabric).high, 0);
}

TEST(Collective, nothing_is_faster_than_the_wire_and_small_messages_cost_a_start) {
  const Fabric fabric{.per_device = BytesPerSecond(450e9)};
  const Estimate large = collective_seconds(collective(CollectiveKind::all_reduce, 8, 1e9), fabric);
  EXPECT_GE(large.low, 1.75e9 / 450e9);
  EXPECT_GT(large.value, large.low);
  EXPECT_GT(large.high, large.value);
  EXPECT_GT(collective_seconds(collective(CollectiveKind::all_reduce, 8, 1), fabric).value, 5e-6);
}

TEST(Collective, a_device_without_links_talks_through_the_host_and_one_without_either_is_an_input_error) {
  Device device;
  device.name = "lonely";
  EXPECT_THROW(fabric_of(device), InputError);
  device.host_bandwidth = Fact<BytesPerSecond>{.value = BytesPerSecond(32e9), .source = "test"};
  EXPECT_TRUE(fabric_of(device).is_host_link);
  device.link_bandwidth = Fact<BytesPerSecond>{.value = BytesPerSecond(450e9), .source = "test"};
  EXPECT_FALSE(fabric_of(device).is_host_link);
  EXPECT_EQ(fabric_of(device).per_device, BytesPerSecond(450e9));
}

}  // namespace foretoken::collective_test
