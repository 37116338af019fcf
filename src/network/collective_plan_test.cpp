#include "network/collective_plan.h"

#include <gtest/gtest.h>

namespace foretoken::collective_plan_test {

constexpr MessageCosts costs{.start = microseconds(8),
                             .near_message = microseconds(1),
                             .far_message = microseconds(10),
                             .near_wire = 1.25,
                             .far_wire = 2};

double bytes_of(const TransferPlan& plan) {
  double sum = 0;
  for (const Stage& stage : plan.stages) {
    for (const Transfer& transfer : stage.transfers) sum += transfer.bytes;
  }
  return sum;
}

TEST(CollectivePlan, transfers_name_devices_and_carry_the_protocols_bytes) {
  const GroupLayout layout = group_layout(ProcessGroup::of({9, 0, 8, 3}), 8, false);
  const CollectiveAlgorithm& direct = collective_algorithm("direct");
  const TransferPlan plan =
      transfer_plan(direct.plan(CollectiveKind::all_gather, layout, 0), CollectiveKind::all_gather, 4e6, layout, costs);
  ASSERT_EQ(plan.stages.size(), 1u);
  EXPECT_EQ(plan.stages[0].per_message, costs.far_message);
  ASSERT_EQ(plan.stages[0].transfers.size(), 12u);
  for (const Transfer& transfer : plan.stages[0].transfers) {
    const bool near = transfer.from / 8 == transfer.to / 8;
    EXPECT_DOUBLE_EQ(transfer.bytes, 1e6 * (near ? costs.near_wire : costs.far_wire));
  }
}

TEST(CollectivePlan, messages_that_stay_in_a_node_are_a_stage_without_bytes) {
  const GroupLayout layout = group_layout(ProcessGroup::strided(0, 16), 8, false);
  const CollectiveAlgorithm& ring = collective_algorithm("ring");
  const TransferPlan plan =
      transfer_plan(ring.plan(CollectiveKind::all_gather, layout, 0), CollectiveKind::all_gather, 1e6, layout, costs);
  ASSERT_EQ(plan.stages.size(), 2u);
  EXPECT_EQ(plan.stages[0].messages, 14);
  EXPECT_EQ(plan.stages[0].per_message, costs.near_message);
  EXPECT_EQ(plan.stages[0].transfers.front().bytes, 0);
  EXPECT_EQ(plan.stages[1].messages, 1);
}

TEST(CollectivePlan, a_barrier_moves_nothing_and_one_rank_does_nothing) {
  const GroupLayout many = group_layout(ProcessGroup::strided(0, 16), 8, false);
  const GroupLayout one = group_layout(ProcessGroup::strided(0, 1), 8, false);
  for (const std::string_view name : {"ring", "tree", "direct", "halving_doubling"}) {
    const CollectiveAlgorithm& algorithm = collective_algorithm(name);
    EXPECT_EQ(bytes_of(transfer_plan(algorithm.plan(CollectiveKind::barrier, many, 0), CollectiveKind::barrier, 1e6,
                                     many, costs)),
              0);
    const TransferPlan alone =
        transfer_plan(algorithm.plan(CollectiveKind::all_reduce, one, 0), CollectiveKind::all_reduce, 1e6, one, costs);
    EXPECT_EQ(bytes_of(alone), 0) << name;
    EXPECT_EQ(alone.start.value(), 0) << name;
  }
}

TEST(CollectivePlan, uneven_pairs_of_equal_size_are_an_even_all_to_all) {
  const ProcessGroup group = ProcessGroup::strided(0, 12);
  const GroupLayout layout = group_layout(group, 8, false);
  const PairBytes pairs{.ranks = 12, .bytes = std::vector<double>(144, 1e5)};
  const TransferPlan uneven = uneven_all_to_all(pairs, group, 8, costs);
  const TransferPlan even = transfer_plan(collective_algorithm("direct").plan(CollectiveKind::all_to_all, layout, 0),
                                          CollectiveKind::all_to_all, 12e5, layout, costs);
  EXPECT_NEAR(bytes_of(uneven), bytes_of(even), 1e-3);
  EXPECT_EQ(uneven.stages[0].transfers.size(), even.stages[0].transfers.size());
  EXPECT_EQ(pairs.most_sent(), 11e5);
}

}  // namespace foretoken::collective_plan_test
