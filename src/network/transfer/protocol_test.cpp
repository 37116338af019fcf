#include "network/transfer/protocol.h"

#include <gtest/gtest.h>

namespace foretoken::protocol_test {

TEST(Protocol, low_latency_costs_bytes_and_simple_costs_latency) {
  for (const StepKind step : {StepKind::ring, StepKind::tree}) {
    for (const bool nvlink : {true, false}) {
      const MessageCosts ll = message_costs(Protocol::ll, step, {.nvlink = nvlink});
      const MessageCosts ll128 = message_costs(Protocol::ll128, step, {.nvlink = nvlink});
      const MessageCosts simple = message_costs(Protocol::simple, step, {.nvlink = nvlink});
      EXPECT_LT(ll.near_message, ll128.near_message);
      EXPECT_LT(ll128.near_message, simple.near_message);
      EXPECT_LT(ll.near_message, ll.far_message);
      EXPECT_DOUBLE_EQ(ll.near_wire, (step == StepKind::tree ? 3.8 : 2) * simple.near_wire);
      EXPECT_DOUBLE_EQ(ll128.far_wire, 128.0 / 120 * simple.far_wire);
    }
  }
}

TEST(Protocol, ideal_costs_nothing) {
  const MessageCosts ideal = message_costs(Protocol::ideal, StepKind::ring, {.nvlink = true});
  EXPECT_EQ(ideal.start + ideal.near_message + ideal.far_message, Seconds(0));
  EXPECT_EQ(ideal.near_wire * ideal.far_wire, 1);
}

}  // namespace foretoken::protocol_test
