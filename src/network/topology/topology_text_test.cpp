#include "network/topology/topology_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "network/topology/kinds/list.h"
#include "network/topology/router.h"

namespace foretoken::topology_text_test {

using testing::HasSubstr;

int64_t distance(const Topology& topology, NetworkNode from, NetworkNode to) {
  return Router(topology, LinkRouting::shortest).distance(from, to);
}

// An example of every kind, with its devices.
const std::map<std::string_view, std::pair<std::string, int64_t>> examples = {
    {"switch", {"switch:72@900GB/s,500ns", 72}},
    {"fully_connected", {"fully_connected:8@64GB/s", 8}},
    {"pcie", {"pcie:2x2x2@32GB/s,1us,socket_bandwidth=20GB/s", 8}},
    {"ring", {"ring:5@50GB/s,1us", 5}},
    {"mesh", {"mesh:3x4@50GB/s", 12}},
    {"torus", {"torus:4x4x4@50GB/s", 64}},
    {"fat_tree", {"fat_tree:4x2x3@400Gb/s,1us,oversubscription=2", 24}},
    {"rail", {"rail:8x4x2@50GB/s,2us,node_bandwidth=450GB/s", 64}},
    {"dragonfly", {"dragonfly:2x4x9@25GB/s", 72}},
};

class EveryKind : public testing::TestWithParam<TopologyKind> {};

TEST_P(EveryKind, builds_the_devices_it_says_with_a_path_between_all_of_them) {
  const auto& [text, devices] = examples.at(GetParam().name);
  const Topology topology = parse_topology(text);
  ASSERT_EQ(topology.device_count(), devices);
  for (const LinkRouting routing : {LinkRouting::shortest, LinkRouting::ecmp, LinkRouting::adaptive}) {
    Router router(topology, routing);
    for (NetworkNode from = 0; from < devices; ++from) {
      for (NetworkNode to = 0; to < devices; ++to) {
        std::vector<RouteLink> route;
        router.route(from, to, 7, route);
        EXPECT_EQ(route.empty(), from == to);
      }
    }
  }
}

TEST_P(EveryKind, has_as_many_links_back_as_forth) {
  const Topology topology = parse_topology(examples.at(GetParam().name).first);
  std::map<std::pair<NetworkNode, NetworkNode>, int> balance;
  for (const Link& link : topology.links()) {
    ++balance[{link.from, link.to}];
    --balance[{link.to, link.from}];
  }
  for (const auto& [ends, count] : balance) EXPECT_EQ(count, 0) << ends.first << " to " << ends.second;
}

TEST_P(EveryKind, is_explained) {
  EXPECT_THAT(topology_kinds_text(), HasSubstr(std::string(GetParam().summary)));
}

INSTANTIATE_TEST_SUITE_P(Kinds, EveryKind, testing::ValuesIn(topology_kinds()),
                         [](const auto& kind) { return std::string(kind.param.name); });

TEST(TopologyText, distances_are_those_of_the_shape) {
  EXPECT_EQ(distance(parse_topology("switch:8@1GB/s"), 0, 7), 2);
  EXPECT_EQ(distance(parse_topology("ring:8@1GB/s"), 0, 7), 1);
  EXPECT_EQ(distance(parse_topology("ring:8@1GB/s"), 0, 4), 4);
  EXPECT_EQ(distance(parse_topology("mesh:8@1GB/s"), 0, 7), 7);
  EXPECT_EQ(distance(parse_topology("torus:4x4@1GB/s"), 0, 10), 4);
  const Topology tree = parse_topology("fat_tree:4x4x4@1GB/s");
  EXPECT_EQ(distance(tree, 0, 3), 2);
  EXPECT_EQ(distance(tree, 0, 4), 4);
  EXPECT_EQ(distance(tree, 0, 16), 6);
  const Topology dragonfly = parse_topology("dragonfly:2x4x9@1GB/s");
  for (NetworkNode to = 1; to < 72; ++to) EXPECT_LE(distance(dragonfly, 0, to), 5);
  const Topology pcie = parse_topology("pcie:2x2x2@1GB/s");
  EXPECT_EQ(distance(pcie, 0, 1), 2);
  EXPECT_EQ(distance(pcie, 0, 2), 4);
  EXPECT_EQ(distance(pcie, 0, 4), 5);
}

TEST(TopologyText, dimensions_multiply_with_the_first_fastest) {
  const Topology topology = parse_topology("switch:8@450GB/s,500ns x ring:4@50GB/s,1us");
  EXPECT_EQ(topology.device_count(), 32);
  EXPECT_EQ(topology.node_count(), 32 + 4);
  EXPECT_EQ(topology.links().size(), 2U * (32 + 32));
  EXPECT_EQ(distance(topology, 0, 7), 2);
  EXPECT_EQ(distance(topology, 0, 8), 1);
  EXPECT_EQ(distance(topology, 0, 9), 3);
  EXPECT_EQ(distance(topology, 0, 24), 1);
  EXPECT_EQ(topology.links().front().bandwidth, BytesPerSecond(450e9));
  EXPECT_EQ(topology.links().back().latency, microseconds(1));
}

TEST(TopologyText, a_fat_tree_keeps_its_bandwidth_on_the_way_up_divided_by_the_oversubscription) {
  const auto total_between_switches = [](const Topology& topology) {
    double total = 0;
    for (const Link& link : topology.links()) {
      if (link.from >= topology.device_count() && link.to > link.from) total += link.bandwidth.value();
    }
    return total;
  };
  EXPECT_DOUBLE_EQ(total_between_switches(parse_topology("fat_tree:8x4@1GB/s")), 32e9);
  EXPECT_DOUBLE_EQ(total_between_switches(parse_topology("fat_tree:8x4@1GB/s,oversubscription=3")), 32e9 / 3);
  EXPECT_DOUBLE_EQ(total_between_switches(parse_topology("fat_tree:8x4x2@1GB/s,oversubscription=2")), 32e9 + 32e9);
  EXPECT_DOUBLE_EQ(total_between_switches(parse_topology("fat_tree:8x4x2@1GB/s,core_oversubscription=4")), 64e9 + 16e9);
}

TEST(TopologyText, on_rails_only_cards_of_the_same_number_meet_in_a_leaf) {
  const Topology topology = parse_topology("rail:8x4x2@50GB/s,node_bandwidth=450GB/s");
  EXPECT_EQ(distance(topology, 0, 7), 2);   // inside the node
  EXPECT_EQ(distance(topology, 0, 8), 4);   // card, leaf, card
  EXPECT_EQ(distance(topology, 0, 9), 6);   // another rail: through a spine
  EXPECT_EQ(distance(topology, 0, 32), 6);  // another group
}

TEST(TopologyText, devices_share_cards_or_have_several) {
  const Topology shared = parse_topology("rail:4x2@50GB/s,cards=2");
  EXPECT_EQ(shared.links_out_of(0).size(), 2U);
  EXPECT_EQ(distance(shared, 0, 5), 4);  // devices 0 and 1 of each node use card 0
  const Topology several = parse_topology("rail:4x2@50GB/s,cards=8");
  EXPECT_EQ(several.links_out_of(0).size(), 3U);
}

TEST(TopologyText, wrong_text_is_refused_with_what_was_expected) {
  const std::map<std::string, std::string> complaints = {
      {"", "KIND:SIZES@BANDWIDTH"},
      {"switch:8", "KIND:SIZES@BANDWIDTH"},
      {"swich:8@1GB/s", "switch"},
      {"switch:0@1GB/s", "whole numbers"},
      {"switch:8x2@1GB/s", "switch:DEVICES"},
      {"fat_tree:8@1GB/s", "fat_tree:DEVICES_PER_LEAF"},
      {"switch:8@500ns", "the bandwidth of a link"},
      {"switch:8@1GB/s,2GB/s", "each once"},
      {"switch:8@0GB/s", "above zero"},
      {"switch:8@1GB/s,speed=3", "no settings for switch"},
      {"fat_tree:8x2@1GB/s,oversubscriptoin=2", "oversubscription"},
      {"fat_tree:8x2@1GB/s,oversubscription=0.5", "between 1 and 1000"},
      {"rail:8x2@1GB/s,cards=2.5", "a whole number"},
      {"dragonfly:2x2x9@1GB/s,global_links=2", "at least 4"},
      {"dragonfly:1x2048x2@1GB/s,global_links=9007199254740992", "at most 67108864 links"},
      {"torus:4096x4096@1GB/s", "at most 4194304 devices"},
      {"fully_connected:100000@1GB/s", "links"},
  };
  for (const auto& [text, expected] : complaints) {
    try {
      parse_topology(text);
      ADD_FAILURE() << text << " was accepted";
    } catch (const InputError& error) {
      EXPECT_THAT(error.what(), HasSubstr(expected)) << text;
    }
  }
}

}  // namespace foretoken::topology_text_test
