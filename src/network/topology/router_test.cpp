#include "network/topology/router.h"

#include <algorithm>
#include <map>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "base/random.h"
#include "network/topology/topology_text.h"

namespace foretoken::router_test {

using testing::HasSubstr;

std::vector<RouteLink> route(const Topology& topology, LinkRouting routing, NetworkNode from, NetworkNode to,
                             uint64_t flow = 0) {
  std::vector<RouteLink> links;
  Router(topology, routing).route(from, to, flow, links);
  return links;
}

NetworkGraph random_graph(uint64_t seed, bool devices_forward) {
  RandomStream random(seed, "graph");
  NetworkGraph graph{.device_count = 12, .devices_forward = devices_forward};
  for (int i = 0; i < 10; ++i) graph.add(NetworkNodeKind::network_switch);
  for (int i = 0; i < 40; ++i) {
    const auto from = static_cast<NetworkNode>(random.below(22));
    const auto to = static_cast<NetworkNode>((static_cast<uint64_t>(from) + 1 + random.below(21)) % 22);
    graph.links.push_back({from, to, BytesPerSecond(random.uniform(1, 9)), {}});
  }
  return graph;
}

// Distances by relaxing every link until nothing changes; devices other than the ends only pass traffic on if they may.
int64_t plain_distance(const Topology& topology, NetworkNode from, NetworkNode to) {
  constexpr int64_t far = 1000;
  std::vector<int64_t> distance(static_cast<size_t>(topology.node_count()), far);
  distance[static_cast<size_t>(to)] = 0;
  for (int64_t round = 0; round < topology.node_count(); ++round) {
    for (const Link& link : topology.links()) {
      if (link.to != to && !topology.forwards(link.to)) continue;
      int64_t& here = distance[static_cast<size_t>(link.from)];
      here = std::min(here, 1 + distance[static_cast<size_t>(link.to)]);
    }
  }
  return distance[static_cast<size_t>(from)] < far ? distance[static_cast<size_t>(from)] : -1;
}

TEST(Router, distances_on_random_graphs_are_those_of_a_plain_search) {
  for (uint64_t seed = 0; seed < 40; ++seed) {
    const Topology topology(random_graph(seed, seed % 2 == 0));
    Router router(topology, LinkRouting::shortest);
    for (NetworkNode from = 0; from < topology.device_count(); ++from) {
      for (NetworkNode to = 0; to < topology.device_count(); ++to) {
        if (from == to) continue;
        int64_t found = -1;
        try {
          found = router.distance(from, to);
        } catch (const InputError&) {
        }
        EXPECT_EQ(found, plain_distance(topology, from, to)) << seed << ": " << from << " to " << to;
      }
    }
  }
}

TEST(Router, a_path_is_a_chain_of_links_as_long_as_the_distance) {
  const Topology topology = parse_topology("fat_tree:4x3x3@1GB/s,oversubscription=2");
  Router router(topology, LinkRouting::ecmp);
  for (NetworkNode to = 1; to < topology.device_count(); ++to) {
    std::vector<RouteLink> path;
    router.route(0, to, 3, path);
    NetworkNode at = 0;
    for (const RouteLink& step : path) {
      EXPECT_EQ(topology.link(step.link).from, at);
      EXPECT_EQ(step.share, 1);
      at = topology.link(step.link).to;
    }
    EXPECT_EQ(at, to);
    EXPECT_EQ(std::ssize(path), router.distance(0, to));
  }
}

TEST(Router, shortest_always_takes_the_same_path_and_ecmp_spreads_flows_over_all) {
  const Topology topology = parse_topology("fat_tree:8x2@1GB/s");  // 8 spines
  std::set<LinkIndex> first, hashed;
  for (uint64_t flow = 0; flow < 200; ++flow) {
    first.insert(route(topology, LinkRouting::shortest, 0, 8, flow)[1].link);
    hashed.insert(route(topology, LinkRouting::ecmp, 0, 8, flow)[1].link);
  }
  EXPECT_EQ(first.size(), 1U);
  EXPECT_EQ(hashed.size(), 8U);
  EXPECT_EQ(route(topology, LinkRouting::ecmp, 0, 8, 5)[1].link, route(topology, LinkRouting::ecmp, 0, 8, 5)[1].link);
}

TEST(Router, adaptive_spreads_bytes_over_all_paths_in_proportion_to_bandwidth) {
  NetworkGraph graph{.device_count = 2, .devices_forward = false};
  const NetworkNode left = graph.add(NetworkNodeKind::network_switch);
  const NetworkNode right = graph.add(NetworkNodeKind::network_switch);
  graph.connect(0, left, BytesPerSecond(9), {});
  graph.connect(1, right, BytesPerSecond(9), {});
  graph.connect(left, right, BytesPerSecond(1), {});
  graph.connect(left, right, BytesPerSecond(3), {});
  const Topology topology(std::move(graph));
  std::map<LinkIndex, double> share;
  for (const RouteLink& step : route(topology, LinkRouting::adaptive, 0, 1)) share[step.link] = step.share;
  EXPECT_EQ(share, (std::map<LinkIndex, double>{{0, 1}, {3, 1}, {4, 0.25}, {6, 0.75}}));
}

TEST(Router, what_flows_into_a_switch_flows_out_of_it_under_adaptive_routing) {
  const Topology topology = parse_topology("fat_tree:4x3x3@1GB/s");
  for (NetworkNode to = 1; to < topology.device_count(); to += 5) {
    std::vector<double> balance(static_cast<size_t>(topology.node_count()));
    for (const RouteLink& step : route(topology, LinkRouting::adaptive, 0, to)) {
      balance[static_cast<size_t>(topology.link(step.link).from)] += step.share;
      balance[static_cast<size_t>(topology.link(step.link).to)] -= step.share;
    }
    for (NetworkNode node = 0; node < topology.node_count(); ++node) {
      EXPECT_NEAR(balance[static_cast<size_t>(node)], node == 0 ? 1 : node == to ? -1 : 0, 1e-12) << node;
    }
  }
}

TEST(Router, answers_do_not_depend_on_what_was_asked_before) {
  const Topology topology = parse_topology("torus:5x5x5@1GB/s");  // more destinations than distance fields are kept
  Router used(topology, LinkRouting::ecmp);
  RandomStream random(1, "pairs");
  for (int i = 0; i < 500; ++i) {
    const auto from = static_cast<NetworkNode>(random.below(125));
    const auto to = static_cast<NetworkNode>(random.below(125));
    if (from == to) continue;
    std::vector<RouteLink> after_others;
    used.route(from, to, 1, after_others);
    const std::vector<RouteLink> alone = route(topology, LinkRouting::ecmp, from, to, 1);
    ASSERT_EQ(after_others.size(), alone.size());
    for (size_t step = 0; step < alone.size(); ++step) EXPECT_EQ(after_others[step].link, alone[step].link);
  }
}

TEST(Router, all_ways_into_a_device_count_however_many_destinations_were_asked_for_before) {
  // Many more switches than distance fields are kept, and two of them lead to each device.
  constexpr int32_t count = 1200, apart = 384;
  NetworkGraph graph{.device_count = count, .devices_forward = false};
  for (int32_t i = 0; i < count; ++i) graph.add(NetworkNodeKind::network_switch);
  for (int32_t i = 0; i < count; ++i) {
    graph.connect(count + i, count + (i + 1) % count, BytesPerSecond(1), {});
    graph.connect(i, count + i, BytesPerSecond(1), {});
    graph.connect(i, count + (i + apart) % count, BytesPerSecond(1), {});
  }
  const Topology topology(std::move(graph));
  const auto around = [](int32_t from, int32_t to) {
    const int32_t steps = ((to - from) % count + count) % count;
    return std::min(steps, count - steps);
  };
  Router router(topology, LinkRouting::shortest);
  RandomStream random(1, "pairs");
  for (int i = 0; i < 20'000; ++i) {
    const auto to = static_cast<int32_t>(random.below(count));
    const auto from = static_cast<int32_t>(random.below(count));
    if (from == to) continue;
    const int32_t between = std::min({around(from, to), around(from + apart, to), around(from, to + apart)});
    ASSERT_EQ(router.distance(from, to), 2 + between) << from << " to " << to;
  }
}

TEST(Router, devices_without_a_path_are_named) {
  NetworkGraph graph{.device_count = 3};
  graph.connect(0, 1, BytesPerSecond(1), {});
  const Topology topology(std::move(graph));
  try {
    route(topology, LinkRouting::ecmp, 0, 2);
    ADD_FAILURE() << "a path was found";
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(), HasSubstr("device 0 to device 2"));
  }
}

}  // namespace foretoken::router_test
