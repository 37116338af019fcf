#include "network/rank_network.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "network/calibration/stack_collectives.h"
#include "network/given_links.h"
#include "network/test_clusters.h"

namespace foretoken::rank_network_test {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

NetworkFacts nvlink_facts() {
  NetworkFacts facts;
  const Cluster cluster = test_cluster({});
  facts.device = cluster.node.device;
  facts.node = cluster.node;
  facts.usual_cluster = [cluster](const Node&) { return cluster; };
  return facts;
}

NetworkFacts pcie_facts() {
  NetworkFacts facts;
  Cluster cluster = test_cluster({.inside = NodeFabricKind::pcie});
  cluster.node.fabric.bandwidth.value = BytesPerSecond(32e9);
  facts.device = cluster.node.device;
  facts.device.title = "Test board";
  facts.node = cluster.node;
  return facts;
}

RankNetwork network_of(NetworkFacts facts, const ParallelPlan& plan) {
  return {std::make_shared<const NetworkFacts>(std::move(facts)), plan};
}

StepCollective tensor_sum(int64_t ranks, double bytes = 1e6) {
  return {.shape = {.kind = CollectiveKind::all_reduce, .axis = ParallelAxis::tensor, .ranks = ranks, .bytes = bytes}};
}

TEST(RankNetwork, inside_a_node_collectives_are_those_of_the_stack) {
  const RankNetwork network = network_of(nvlink_facts(), {.tensor = 8, .pipeline = 2});
  const Device device = nvlink_facts().device;
  EXPECT_EQ(network.seconds(tensor_sum(8)).value,
            stack_collective_seconds(tensor_sum(8).shape, "", device, nullptr).value);
  EXPECT_EQ(network.seconds(tensor_sum(1)).value, 0);
}

TEST(RankNetwork, between_nodes_they_are_those_of_the_cluster_which_is_said) {
  const RankNetwork network = network_of(nvlink_facts(), {.tensor = 16});
  const CollectiveModel model(cluster_with_nodes(test_cluster({}), 2), {});
  EXPECT_EQ(network.seconds(tensor_sum(16)).value,
            model.estimate({.kind = CollectiveKind::all_reduce, .bytes = 1e6, .group = ProcessGroup::strided(0, 16)})
                .seconds.value);
  ASSERT_THAT(network.notes(), SizeIs(1));
  EXPECT_THAT(network.notes().front(), HasSubstr("16 ranks span 2 nodes of 8 GPUs"));
  EXPECT_THAT(network_of(nvlink_facts(), {.tensor = 8}).notes(), IsEmpty());
}

TEST(RankNetwork, a_cluster_that_is_too_small_is_refused) {
  NetworkFacts facts = nvlink_facts();
  facts.cluster = test_cluster({.nodes = 2});
  EXPECT_NO_THROW(network_of(facts, {.tensor = 8, .pipeline = 2}));
  EXPECT_THROW(network_of(facts, {.tensor = 8, .pipeline = 3}), InputError);
}

TEST(RankNetwork, a_send_crosses_nodes_only_where_its_stages_lie_on_two) {
  const RankNetwork network = network_of(nvlink_facts(), {.tensor = 4, .pipeline = 4});
  const auto between_nodes = [&](int64_t stage) {
    StepCollective send{
        .shape = {.kind = CollectiveKind::send_recv, .axis = ParallelAxis::pipeline, .ranks = 2, .bytes = 1e6}};
    send.stage = stage;
    return network.traffic(send).back().between_nodes;
  };
  EXPECT_FALSE(between_nodes(0));
  EXPECT_TRUE(between_nodes(1));
  EXPECT_FALSE(between_nodes(2));
}

TEST(RankNetwork, ranks_of_a_node_share_its_network_cards) {
  const auto send_seconds = [](int cards, const ParallelPlan& plan) {
    NetworkFacts facts = nvlink_facts();
    facts.cluster = test_cluster({.nodes = 2, .cards = cards});
    const StepCollective send{
        .shape = {.kind = CollectiveKind::send_recv, .axis = ParallelAxis::pipeline, .ranks = 2, .bytes = 1e10}};
    return network_of(facts, plan).seconds(send).value;
  };
  const ParallelPlan eight{.tensor = 8, .pipeline = 2};
  EXPECT_NEAR(send_seconds(1, eight) / send_seconds(8, eight), 8, 0.1);
  EXPECT_NEAR(send_seconds(4, eight) / send_seconds(8, eight), 2, 0.1);
}

TEST(RankNetwork, links_carry_what_ranks_send) {
  const RankNetwork network = network_of(nvlink_facts(), {.tensor = 16});
  const std::vector<LinkTraffic> inside = network_of(nvlink_facts(), {.tensor = 8}).traffic(tensor_sum(8));
  ASSERT_THAT(inside, SizeIs(1));
  EXPECT_DOUBLE_EQ(inside.front().bytes, 2 * 7.0 / 8 * 1e6);
  const StepCollective exchange{
      .shape = {.kind = CollectiveKind::all_to_all, .axis = ParallelAxis::tensor, .ranks = 16, .bytes = 16e6}};
  const std::vector<LinkTraffic> across = network.traffic(exchange);
  ASSERT_THAT(across, SizeIs(2));
  EXPECT_DOUBLE_EQ(across.front().bytes, 7e6);
  EXPECT_DOUBLE_EQ(across.back().bytes, 8e6);
  EXPECT_TRUE(across.back().between_nodes);
}

// As Library::network does.
void give_link(NetworkFacts& facts, const LinkSpec& link) {
  facts.link = link;
  set_links(*facts.node, link);
}

TEST(RankNetwork, pcie_boards_run_rings_with_a_wide_interval_until_a_link_is_given) {
  const RankNetwork unknown = network_of(pcie_facts(), {.tensor = 4});
  const Estimate guessed = unknown.seconds(tensor_sum(4));
  EXPECT_GT(guessed.high / guessed.low, 4);
  ASSERT_THAT(unknown.notes(), SizeIs(1));
  EXPECT_THAT(unknown.notes().front(), HasSubstr("the interval covers 5.1 to 24 GB/s"));
  EXPECT_THAT(unknown.notes().front(), HasSubstr("among 4 GPUs (busbw of nccl-tests), given as {link} bandwidth=GB/s"));

  NetworkFacts facts = pcie_facts();
  give_link(facts, {.bandwidth = BytesPerSecond(20e9), .latency = microseconds(10)});
  const RankNetwork given = network_of(facts, {.tensor = 4});
  const Estimate ring = given.seconds(tensor_sum(4));
  EXPECT_NEAR(ring.value, 6 * (10e-6 + 1e6 / 4 / 20e9), 1e-12);
  EXPECT_LT(ring.high / ring.low, 1.8);
  EXPECT_THAT(given.notes(), IsEmpty());
}

// What the note asks for first is what narrows most, of prompts and of decodes.
TEST(RankNetwork, the_bandwidth_of_a_pcie_host_narrows_more_than_its_latency) {
  for (const double bytes : {1e6, 64e6}) {
    const auto width = [&](const LinkSpec& link) {
      NetworkFacts facts = pcie_facts();
      give_link(facts, link);
      const Estimate time = network_of(facts, {.tensor = 8}).seconds(tensor_sum(8, bytes));
      return time.high / time.low;
    };
    EXPECT_LT(width({.bandwidth = BytesPerSecond(14e9)}), width({.latency = microseconds(10)})) << bytes;
  }
  NetworkFacts facts = pcie_facts();
  give_link(facts, {.bandwidth = BytesPerSecond(20e9)});
  EXPECT_THAT(network_of(facts, {.tensor = 4}).notes().front(), HasSubstr("{link} latency=us, divided by its 6 hops"));
}

TEST(RankNetwork, one_known_number_of_a_link_narrows_the_interval) {
  const auto width = [](const LinkSpec& link) {
    NetworkFacts facts = pcie_facts();
    give_link(facts, link);
    const Estimate time = network_of(facts, {.tensor = 4}).seconds(tensor_sum(4));
    return time.high / time.low;
  };
  EXPECT_LT(width({.bandwidth = BytesPerSecond(20e9)}), width({}));
  EXPECT_LT(width({.latency = microseconds(10)}), width({}));
}

TEST(RankNetwork, bridges_join_pairs_and_no_more) {
  NetworkFacts facts = pcie_facts();
  facts.node->fabric.bridge = facts.device.link_bandwidth;
  const RankNetwork bridged = network_of(facts, {.tensor = 2, .pipeline = 2}),
                    plain = network_of(pcie_facts(), {.tensor = 2, .pipeline = 2});
  EXPECT_LT(bridged.seconds(tensor_sum(2)).value, 0.5 * plain.seconds(tensor_sum(2)).value);
  EXPECT_EQ(bridged.traffic(tensor_sum(2)).front().link, "NVLink bridge");
  const StepCollective send{
      .shape = {.kind = CollectiveKind::send_recv, .axis = ParallelAxis::pipeline, .ranks = 2, .bytes = 1e6}};
  EXPECT_EQ(bridged.seconds(send).value, plain.seconds(send).value);
}

TEST(RankNetwork, the_same_machine_serves_other_plans) {
  const RankNetwork one = network_of(nvlink_facts(), {.tensor = 16});
  EXPECT_EQ(one.for_plan({.tensor = 8})->seconds(tensor_sum(8)).value,
            network_of(nvlink_facts(), {.tensor = 8}).seconds(tensor_sum(8)).value);
}

}  // namespace foretoken::rank_network_test
