#include "network/rank_places.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"

namespace foretoken::rank_places_test {

using testing::ElementsAre;

std::vector<int64_t> devices(const ParallelPlan& plan, ParallelAxis axis, int64_t ranks, int64_t stage = 0,
                             std::span<const ParallelAxis> order = engine_rank_order,
                             CollectiveKind kind = CollectiveKind::all_gather) {
  const ProcessGroup group = RankPlaces(plan, order).group({.kind = kind, .axis = axis, .ranks = ranks}, stage);
  std::vector<int64_t> result;
  for (int64_t i = 0; i < group.size(); ++i) result.push_back(group.device(i));
  return result;
}

TEST(RankPlaces, tensor_ranks_are_neighbours_then_stages_then_replicas) {
  const ParallelPlan plan{.tensor = 2, .pipeline = 2, .data = 2, .expert = 4};
  EXPECT_THAT(devices(plan, ParallelAxis::tensor, 2), ElementsAre(0, 1));
  EXPECT_THAT(devices(plan, ParallelAxis::tensor, 2, 1), ElementsAre(2, 3));
  EXPECT_THAT(devices(plan, ParallelAxis::data, 2), ElementsAre(0, 4));
  EXPECT_THAT(devices(plan, ParallelAxis::expert, 4), ElementsAre(0, 1, 4, 5));
  EXPECT_THAT(devices(plan, ParallelAxis::expert, 4, 1), ElementsAre(2, 3, 6, 7));
}

TEST(RankPlaces, training_frameworks_put_stages_outermost) {
  const ParallelPlan plan{.tensor = 2, .pipeline = 2, .data = 2, .expert = 4};
  EXPECT_THAT(devices(plan, ParallelAxis::data, 2, 0, training_rank_order), ElementsAre(0, 2));
  EXPECT_THAT(devices(plan, ParallelAxis::expert, 4, 1, training_rank_order), ElementsAre(4, 5, 6, 7));
}

TEST(RankPlaces, a_send_goes_to_the_next_stage_and_from_the_last_one_back) {
  const ParallelPlan plan{.tensor = 4, .pipeline = 3};
  const auto send = [&](int64_t stage) {
    return devices(plan, ParallelAxis::pipeline, 2, stage, engine_rank_order, CollectiveKind::send_recv);
  };
  EXPECT_THAT(send(0), ElementsAre(0, 4));
  EXPECT_THAT(send(1), ElementsAre(4, 8));
  EXPECT_THAT(send(2), ElementsAre(8, 4));
}

TEST(RankPlaces, replicas_that_share_no_experts_lie_apart) {
  const ParallelPlan plan{.tensor = 1, .data = 8, .expert = 4};
  EXPECT_THAT(devices(plan, ParallelAxis::data, 2), ElementsAre(0, 4));
}

TEST(RankPlaces, every_rank_has_a_place_of_its_own_on_the_axes) {
  const ParallelPlan plan{.tensor = 2, .pipeline = 3, .data = 2, .context = 2};
  for (const StepPhase phase : {StepPhase::decode, StepPhase::train}) {
    const RankPlaces places(plan, usual_rank_order(phase));
    for (int64_t rank = 0; rank < rank_count(plan); ++rank) EXPECT_EQ(places.rank_at(places.position_of(rank)), rank);
  }
  EXPECT_EQ(RankPlaces(plan, engine_rank_order).position_of(4), (RankPosition{.stage = 1}));
  EXPECT_EQ(RankPlaces(plan, training_rank_order).position_of(4), (RankPosition{.data = 1}));
}

TEST(RankPlaces, an_order_is_read_and_what_it_leaves_out_comes_after) {
  EXPECT_THAT(parse_rank_order("--rank-order", "tp-dp-pp"),
              ElementsAre(ParallelAxis::tensor, ParallelAxis::data, ParallelAxis::pipeline, ParallelAxis::context));
  for (const char* wrong : {"tp-tp", "ep", "tp,pp", ""}) {
    EXPECT_THROW(parse_rank_order("--rank-order", wrong), InputError) << wrong;
  }
}

TEST(RankPlaces, equal_placements_alone_have_equal_keys) {
  EXPECT_EQ(placement_key({}), placement_key({}));
  PlacementSpec other{.node = "l40s_pcie"};
  EXPECT_NE(placement_key({}), placement_key(other));
  other = {.link = {.latency = microseconds(10)}};
  EXPECT_NE(placement_key({}), placement_key(other));
  other = {.order = {ParallelAxis::data}};
  EXPECT_NE(placement_key({}), placement_key(other));
}

}  // namespace foretoken::rank_places_test
