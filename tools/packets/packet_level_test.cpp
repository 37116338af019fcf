#include "packet_level.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "network/topology/topology_file.h"

namespace foretoken {
namespace {

// The other cases take longer; run foretoken-packets on them.
TEST(PacketLevel, a_run_gives_the_times_that_were_recorded) {
  const TrafficCase traffic = read_traffic_case(FORETOKEN_SOURCE_DIR "/data/networks/packets/incast_unequal.json");
  const std::vector<double> ends = packet_level_ends(traffic, topology_from(traffic.topology));
  ASSERT_EQ(ends.size(), traffic.recorded_ends.size());
  for (size_t i = 0; i < ends.size(); ++i) EXPECT_NEAR(ends[i], traffic.recorded_ends[i].value(), 1e-9) << i;
}

TEST(PacketLevel, flows_that_take_several_paths_are_refused) {
  const TrafficCase traffic{.routing = LinkRouting::adaptive};
  EXPECT_THROW(packet_level_ends(traffic, topology_from("switch:2@1GB/s")), InputError);
}

}  // namespace
}  // namespace foretoken
