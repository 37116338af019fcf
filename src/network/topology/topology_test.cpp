#include "network/topology/topology.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"

namespace foretoken::topology_test {

using testing::ElementsAre;

TEST(Topology, links_are_found_from_both_ends_in_the_order_they_were_given) {
  NetworkGraph graph{.device_count = 2};
  const NetworkNode hub = graph.add(NetworkNodeKind::host);
  graph.connect(0, hub, BytesPerSecond(1), {});
  graph.connect(hub, 1, BytesPerSecond(2), {});
  const Topology topology(std::move(graph));
  EXPECT_EQ(topology.node_count(), 3);
  EXPECT_THAT(topology.links_out_of(hub), ElementsAre(1, 2));
  EXPECT_THAT(topology.links_into(hub), ElementsAre(0, 3));
  EXPECT_EQ(topology.kind(1), NetworkNodeKind::device);
  EXPECT_EQ(topology.kind(hub), NetworkNodeKind::host);
  EXPECT_EQ(topology.name(hub), "host 2");
}

TEST(Topology, links_that_make_no_sense_are_refused) {
  const auto with_link = [](Link link) {
    NetworkGraph graph{.device_count = 2};
    graph.links = {link};
    return graph;
  };
  EXPECT_NO_THROW(Topology(with_link({0, 1, BytesPerSecond(1), {}})));
  EXPECT_THROW(Topology(with_link({0, 2, BytesPerSecond(1), {}})), InputError);
  EXPECT_THROW(Topology(with_link({-1, 1, BytesPerSecond(1), {}})), InputError);
  EXPECT_THROW(Topology(with_link({1, 1, BytesPerSecond(1), {}})), InputError);
  EXPECT_THROW(Topology(with_link({0, 1, BytesPerSecond(0), {}})), InputError);
  EXPECT_THROW(Topology(with_link({0, 1, BytesPerSecond(1), Seconds(-1)})), InputError);
  EXPECT_THROW(Topology(NetworkGraph{}), InputError);
}

}  // namespace foretoken::topology_test
