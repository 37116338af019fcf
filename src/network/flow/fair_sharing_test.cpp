#include "network/flow/fair_sharing.h"

#include <algorithm>
#include <deque>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/random.h"

namespace foretoken::fair_sharing_test {

using testing::DoubleNear;
using testing::ElementsAre;
using testing::IsEmpty;

std::vector<Link> links_of(const std::vector<double>& capacities) {
  std::vector<Link> links;
  for (const double capacity : capacities) links.push_back({0, 1, BytesPerSecond(capacity), {}});
  return links;
}

// Levels of flows that are all there from the beginning.
std::vector<double> levels(const std::vector<double>& capacities, const std::vector<std::vector<LinkLoad>>& flows) {
  FairSharing sharing(links_of(capacities));
  for (const std::vector<LinkLoad>& flow : flows) sharing.add(flow);
  sharing.settle();
  std::vector<double> found;
  for (size_t i = 0; i < flows.size(); ++i) found.push_back(sharing.level(static_cast<int32_t>(i)));
  return found;
}

TEST(FairSharing, flows_on_one_link_get_equal_parts) {
  EXPECT_THAT(levels({12}, {{{0, 1}}, {{0, 1}}, {{0, 1}}}), ElementsAre(4, 4, 4));
}

TEST(FairSharing, what_a_slow_flow_leaves_goes_to_the_others) {
  // The first flow is held at 2 elsewhere; the other two share 10.
  EXPECT_THAT(levels({12, 2}, {{{0, 1}, {1, 1}}, {{0, 1}}, {{0, 1}}}), ElementsAre(2, 5, 5));
}

TEST(FairSharing, on_a_parking_lot_the_long_flow_takes_its_part_of_the_tightest_link) {
  // One flow over three links of 1, 2 and 4, and one short flow on each.
  EXPECT_THAT(levels({1, 2, 4}, {{{0, 1}, {1, 1}, {2, 1}}, {{0, 1}}, {{1, 1}}, {{2, 1}}}),
              ElementsAre(0.5, 0.5, 1.5, 3.5));
}

TEST(FairSharing, flows_held_back_on_one_link_leave_the_rest_of_the_next) {
  // Three flows share a link; the one of them that goes on leaves two thirds of its second link.
  EXPECT_THAT(levels({1, 1}, {{{0, 1}}, {{0, 1}}, {{0, 1}, {1, 1}}, {{1, 1}}}),
              ElementsAre(DoubleNear(1.0 / 3, 1e-12), DoubleNear(1.0 / 3, 1e-12), DoubleNear(1.0 / 3, 1e-12),
                          DoubleNear(2.0 / 3, 1e-12)));
}

TEST(FairSharing, a_flow_of_many_transfers_counts_as_often_on_a_link) {
  EXPECT_THAT(levels({12}, {{{0, 3}}, {{0, 1}}}), ElementsAre(3, 3));  // 9 and 3 of the link
  EXPECT_THAT(levels({12, 1}, {{{0, 3}, {1, 1}}, {{0, 1}}}), ElementsAre(1, 9));
}

TEST(FairSharing, only_flows_whose_level_changes_are_reported) {
  const std::vector<LinkLoad> on_first = {{0, 1}}, on_second = {{1, 1}};
  FairSharing sharing(links_of({10, 10}));
  const int32_t a = sharing.add(on_first);
  const int32_t b = sharing.add(on_second);
  EXPECT_THAT(sharing.settle(), ElementsAre(a, b));
  const int32_t c = sharing.add(on_second);
  EXPECT_THAT(sharing.settle(), ElementsAre(b, c));
  EXPECT_EQ(sharing.level(b), 5);
  sharing.remove(c);
  EXPECT_THAT(sharing.settle(), ElementsAre(b));
  EXPECT_EQ(sharing.level(b), 10);
  EXPECT_THAT(sharing.settle(), IsEmpty());
}

// Flows over random links with random weights.
std::vector<std::vector<LinkLoad>> random_flows(RandomStream& random, size_t count, size_t links) {
  std::vector<std::vector<LinkLoad>> flows(count);
  for (std::vector<LinkLoad>& flow : flows) {
    for (size_t link = 0; link < links; ++link) {
      if (random.below(4) == 0) flow.push_back({static_cast<LinkIndex>(link), random.uniform(0.1, 2)});
    }
    if (flow.empty()) flow.push_back({0, 1});
  }
  return flows;
}

class RandomFlows : public testing::TestWithParam<int> {
 protected:
  RandomStream random_{static_cast<uint64_t>(GetParam()), "flows"};
};

// What makes an allocation max-min fair: every flow has a full link on which no other flow has a higher level.
TEST_P(RandomFlows, every_flow_has_a_full_link_where_none_is_faster) {
  std::vector<double> capacities(12);
  for (double& capacity : capacities) capacity = random_.uniform(1, 10);
  const auto flows = random_flows(random_, 40, capacities.size());
  const std::vector<double> found = levels(capacities, flows);
  std::vector<double> used(capacities.size()), fastest(capacities.size());
  for (size_t i = 0; i < flows.size(); ++i) {
    for (const LinkLoad& load : flows[i]) {
      used[static_cast<size_t>(load.link)] += found[i] * load.weight;
      fastest[static_cast<size_t>(load.link)] = std::max(fastest[static_cast<size_t>(load.link)], found[i]);
    }
  }
  for (size_t link = 0; link < capacities.size(); ++link) EXPECT_LE(used[link], capacities[link] * (1 + 1e-9));
  for (size_t i = 0; i < flows.size(); ++i) {
    const bool has_bottleneck = std::any_of(flows[i].begin(), flows[i].end(), [&](const LinkLoad& load) {
      const auto link = static_cast<size_t>(load.link);
      return used[link] > capacities[link] * (1 - 1e-9) && found[i] > fastest[link] * (1 - 1e-9);
    });
    EXPECT_TRUE(has_bottleneck) << i;
  }
}

TEST_P(RandomFlows, flows_that_came_and_went_leave_the_levels_of_those_that_stay) {
  std::vector<double> capacities(12);
  for (double& capacity : capacities) capacity = random_.uniform(1, 10);
  const auto flows = random_flows(random_, 40, capacities.size());
  FairSharing sharing(links_of(capacities));
  std::vector<std::pair<int32_t, size_t>> present;  // number, which of the flows
  for (size_t i = 0; i < flows.size(); ++i) {
    present.push_back({sharing.add(flows[i]), i});
    if (random_.below(2) == 0) {
      const size_t leaving = random_.below(present.size());
      sharing.remove(present[leaving].first);
      present.erase(present.begin() + static_cast<int64_t>(leaving));
    }
    if (random_.below(3) == 0) sharing.settle();
  }
  sharing.settle();
  std::vector<std::vector<LinkLoad>> stayed;
  for (const auto& [number, flow] : present) stayed.push_back(flows[flow]);
  const std::vector<double> expected = levels(capacities, stayed);
  for (size_t i = 0; i < present.size(); ++i) {
    EXPECT_NEAR(sharing.level(present[i].first) / expected[i], 1, 1e-9) << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomFlows, testing::Range(0, 20));

}  // namespace foretoken::fair_sharing_test
