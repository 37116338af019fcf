#include "network/topology/topology_file.h"

#include <ctime>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "network/topology/router.h"

namespace foretoken::topology_file_test {

using testing::HasSubstr;

constexpr std::string_view two_devices = R"({
  "nodes": [{"name": "left", "kind": "device"}, {"name": "hub", "kind": "switch"}, {"name": "right", "kind": "device"}],
  "links": [{"from": "left", "to": "hub", "bandwidth_gb_per_s": 50, "latency_us": 1},
            {"from": "hub", "to": "right", "bandwidth_gb_per_s": 25, "latency_us": 2, "one_way": true},
            {"from": "right", "to": "hub", "bandwidth_gb_per_s": 12.5}]%s
})";

std::string with(std::string_view more) {
  std::string text(two_devices);
  return text.replace(text.find("%s"), 2, more);
}

TEST(TopologyFile, devices_come_first_and_links_go_both_ways_unless_they_say_so) {
  const Topology topology = parse_topology_json(with(""), "test.json");
  EXPECT_EQ(topology.device_count(), 2);
  EXPECT_EQ(topology.name(0), "left");
  EXPECT_EQ(topology.name(1), "right");
  EXPECT_EQ(topology.name(2), "hub");
  EXPECT_EQ(topology.kind(2), NetworkNodeKind::network_switch);
  ASSERT_EQ(topology.links().size(), 5U);
  EXPECT_EQ(topology.link(2).bandwidth, BytesPerSecond(25e9));
  EXPECT_EQ(topology.link(2).latency, microseconds(2));
  EXPECT_EQ(topology.link(2).to, 1);
  EXPECT_EQ(topology.link(3).from, 1);
  EXPECT_EQ(topology.link(4).from, 2);
}

TEST(TopologyFile, changes_degrade_replace_and_remove_links) {
  const Topology topology = parse_topology_json(
      R"({"topology": "ring:4@100GB/s,1us", "changes": [
            {"from": "device 0", "to": "device 1", "bandwidth_factor": 0.5},
            {"from": "device 1", "to": "device 2", "bandwidth_gb_per_s": 10, "latency_us": 5, "one_way": true},
            {"from": "device 3", "to": "device 0", "removed": true}]})",
      "test.json");
  ASSERT_EQ(topology.links().size(), 6U);
  for (const Link& link : topology.links()) {
    const auto ends = std::pair(link.from, link.to);
    const bool halved = ends == std::pair(0, 1) || ends == std::pair(1, 0);
    const bool replaced = ends == std::pair(1, 2);
    EXPECT_EQ(link.bandwidth, BytesPerSecond(halved ? 50e9 : replaced ? 10e9 : 100e9));
    EXPECT_EQ(link.latency, microseconds(replaced ? 5 : 1));
  }
  EXPECT_EQ(Router(topology, LinkRouting::shortest).distance(3, 0), 3);
}

TEST(TopologyFile, changes_apply_one_after_the_other) {
  const std::string halved = R"({"from": "device 0", "to": "device 1", "bandwidth_factor": 0.5, "one_way": true})";
  const std::string removed = R"({"from": "device 1", "to": "device 0", "removed": true})";
  const auto ring_with = [](const std::string& changes) {
    return parse_topology_json(R"({"topology": "ring:4@100GB/s", "changes": [)" + changes + "]}", "test.json");
  };
  EXPECT_EQ(ring_with(halved + "," + halved).link(0).bandwidth, BytesPerSecond(25e9));
  EXPECT_EQ(ring_with(halved + "," + removed).links().size(), 6U);
  EXPECT_THROW(ring_with(removed + "," + halved), InputError) << "the link is gone";
}

// Looking at all links for each device or each change would take minutes.
TEST(TopologyFile, a_large_ring_with_a_change_to_every_link_is_read_at_once) {
  constexpr int devices = 60'000;
  std::string text = R"({"topology": "ring:60000@50GB/s,1us", "changes": [)";
  for (int i = 0; i < devices; ++i) {
    text += (i == 0 ? "" : ",") + std::string(R"({"from": "device )") + std::to_string(i) + R"(", "to": "device )" +
            std::to_string((i + 1) % devices) + R"(", "bandwidth_factor": 0.5})";
  }
  const std::clock_t start = std::clock();
  const Topology topology = parse_topology_json(text + "]}", "test.json");
  EXPECT_LT(static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC, 10);
  for (const Link& link : topology.links()) ASSERT_EQ(link.bandwidth, BytesPerSecond(25e9));
}

TEST(TopologyFile, every_device_must_reach_the_first_and_be_reached_by_it) {
  const auto complaint = [](std::string_view from, std::string_view to) {
    try {
      parse_topology_json(R"({"nodes": [{"name": "a", "kind": "device"}, {"name": "b", "kind": "device"}], "links": [
                               {"one_way": true, "bandwidth_gb_per_s": 1, "from": ")" +
                              std::string(from) + R"(", "to": ")" + std::string(to) + R"("}]})",
                          "test.json");
    } catch (const InputError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_THAT(complaint("a", "b"), HasSubstr("b to a"));
  EXPECT_THAT(complaint("b", "a"), HasSubstr("a to b"));
}

TEST(TopologyFile, traffic_passes_through_devices_only_where_they_forward) {
  const std::string line = R"({"topology": "mesh:3@1GB/s")";
  EXPECT_EQ(parse_topology_json(line + "}", "test.json").device_count(), 3);
  EXPECT_THROW(parse_topology_json(line + R"(, "devices_forward": false})", "test.json"), InputError);
}

TEST(TopologyFile, complaints_name_the_place_and_the_nearest_name) {
  const std::vector<std::pair<std::string, std::string>> complaints = {
      {R"({"nodes": [{"name": "hub", "kind": "switch"}], "links": []})", "at least one node of kind device"},
      {R"({"nodes": [{"name": "a", "kind": "devise"}], "links": []})", "device"},
      {R"({"nodes": [{"name": "a", "kind": "device"}, {"name": "a", "kind": "device"}], "links": []})",
       "nodes[1].name"},
      {R"({"nodes": [{"name": "a", "kind": "device"}, {"name": "b", "kind": "device"}], "links": []})", "b to a"},
      {R"({"nodes": [{"name": "gpu0", "kind": "device"}],
           "links": [{"from": "gpu0", "to": "gpu", "bandwidth_gb_per_s": 1}]})",
       "gpu0"},
      {R"({"nodes": [{"name": "a", "kind": "device"}],
           "links": [{"from": "a", "to": "a", "bandwidth_gb_per_s": 1}]})",
       "another node"},
      {R"({"topology": "ring:4@100"})", "a bandwidth such as"},
      {R"({"topology": "ring:4@1GB/s", "nodes": []})", "not both"},
      {R"({"topology": "ring:4@1GB/s", "changes": [{"from": "device 0", "to": "device 2", "removed": true}]})",
       "two nodes with a link"},
      {R"({"topology": "mesh:2@1GB/s", "changes": [{"from": "device 0", "to": "device 1", "removed": true}]})",
       "device 1 to device 0"},
      {with(R"(, "chagnes": [])"), "changes"},
      {"[]", "object"},
  };
  for (const auto& [text, expected] : complaints) {
    try {
      parse_topology_json(text, "test.json");
      ADD_FAILURE() << text << " was accepted";
    } catch (const InputError& error) {
      EXPECT_THAT(error.what(), HasSubstr(expected)) << text;
      EXPECT_THAT(error.what(), HasSubstr("test.json")) << text;
    }
  }
}

TEST(TopologyFile, text_and_path_are_told_apart) {
  EXPECT_EQ(topology_from("switch:4@1GB/s").device_count(), 4);
  EXPECT_THROW(topology_from("no/such/file.json"), InputError);
}

}  // namespace foretoken::topology_file_test
