#include "network/replay/collective_networks.h"

#include <gtest/gtest.h>

#include "hardware/catalogue.h"
#include "network/replay/replay.h"
#include "network/replay/test_workload.h"
#include "network/topology/topology_text.h"

namespace foretoken::collective_networks_test {

constexpr int64_t megabytes = 64'000'000;

CollectiveModel switch_of_eight(Fidelity fidelity) {
  return {parse_topology("switch:8@100GB/s,1us"), "switch", 0, {.fidelity = fidelity}};
}

Picoseconds makespan(TestWorkload workload, ReplayNetwork& network) {
  return replay(std::move(workload).build(), network).makespan;
}

TestWorkload all_reduces(size_t ranks, int32_t groups) {
  TestWorkload workload(ranks);
  std::vector<int32_t> members;
  for (size_t rank = 0; rank < ranks; ++rank) members.push_back(static_cast<int32_t>(rank));
  for (int32_t k = 0; k < groups; ++k) {
    const int32_t group = workload.group(members);
    for (size_t rank = 0; rank < ranks; ++rank) workload.all_reduce(rank, megabytes, {}, group);
  }
  return workload;
}

TEST(ReplayNetworks, one_collective_takes_its_estimate_at_either_fidelity) {
  const CollectiveModel closed = switch_of_eight(Fidelity::closed), flow = switch_of_eight(Fidelity::flow);
  const CollectiveRequest request{.kind = CollectiveKind::all_reduce,
                                  .bytes = static_cast<double>(megabytes),
                                  .group = ProcessGroup::strided(0, 8)};
  EXPECT_EQ(makespan(all_reduces(8, 1), *estimated_network(closed)),
            to_picoseconds(Seconds(closed.estimate(request).seconds.value)));
  EXPECT_EQ(makespan(all_reduces(8, 1), *flow_network(flow)),
            to_picoseconds(Seconds(flow.estimate(request).seconds.value)));
}

TEST(ReplayNetworks, collectives_share_links_at_flow_level_only) {
  const CollectiveModel closed = switch_of_eight(Fidelity::closed), flow = switch_of_eight(Fidelity::flow);
  EXPECT_EQ(makespan(all_reduces(8, 2), *estimated_network(closed)),
            makespan(all_reduces(8, 1), *estimated_network(closed)));
  const auto alone = static_cast<double>(makespan(all_reduces(8, 1), *flow_network(flow)));
  const auto both = static_cast<double>(makespan(all_reduces(8, 2), *flow_network(flow)));
  EXPECT_GT(both, 1.9 * alone) << "the links are the bottleneck, latency is not shared";
  EXPECT_LE(both, 2 * alone);
}

TEST(ReplayNetworks, messages_into_one_device_share_its_link) {
  const CollectiveModel flow = switch_of_eight(Fidelity::flow);
  const auto incast = [&](size_t senders) {
    TestWorkload workload(8);
    for (size_t rank = 1; rank <= senders; ++rank) {
      workload.send(rank, 0, megabytes);
      workload.receive(0, static_cast<int32_t>(rank), megabytes);
    }
    return static_cast<double>(makespan(std::move(workload), *flow_network(flow)));
  };
  EXPECT_NEAR(incast(4) / incast(1), 4, 0.1);
}

TEST(ReplayNetworks, a_broadcast_starts_at_its_root) {
  // In a line of devices the way from an end to all others is longer than that from the middle.
  const CollectiveModel flow{parse_topology("mesh:9@100GB/s,1us"), "line", 0, {.fidelity = Fidelity::flow}};
  const auto from = [&](int32_t root) {
    TestWorkload workload(9);
    for (size_t rank = 0; rank < 9; ++rank) workload.broadcast(rank, root, megabytes);
    return makespan(std::move(workload), *flow_network(flow, {.routing = LinkRouting::shortest}));
  };
  EXPECT_EQ(from(0), from(-1));
  EXPECT_NE(from(0), from(4));
}

TEST(ReplayNetworks, the_order_of_a_group_is_that_of_its_ring) {
  const CollectiveModel flow{parse_topology("ring:8@100GB/s,1us"), "ring", 0, {.fidelity = Fidelity::flow}};
  const auto with_order = [&](std::vector<int32_t> order) {
    TestWorkload workload(8);
    const int32_t group = workload.group({0, 1, 2, 3, 4, 5, 6, 7}, std::move(order));
    for (size_t rank = 0; rank < 8; ++rank) workload.all_reduce(rank, megabytes, {}, group);
    return makespan(std::move(workload), *flow_network(flow, {.routing = LinkRouting::shortest}));
  };
  EXPECT_EQ(with_order({}), with_order({1, 2, 3, 4, 5, 6, 7, 0}));
  EXPECT_GT(with_order({0, 4, 1, 5, 2, 6, 3, 7}), with_order({}));
}

TEST(ReplayNetworks, large_collectives_keep_some_processors_busy_and_never_all) {
  const auto share = nccl_busy_share(HardwareCatalogue(FORETOKEN_SOURCE_DIR "/data/hardware").device("h100_sxm"));
  const int32_t ranks[] = {0, 1};
  const auto of = [&](double bytes) { return share({.bytes = bytes, .ranks = ranks}); };
  EXPECT_GT(of(1e9), of(1e3));
  EXPECT_GT(of(1e3), 0);
  EXPECT_LT(of(1e9), 0.5);
}

TEST(ReplayNetworks, every_kind_of_collective_runs_on_a_cluster_at_either_fidelity) {
  const Cluster cluster =
      cluster_with_nodes(HardwareCatalogue(FORETOKEN_SOURCE_DIR "/data/hardware").cluster("h100_ib_rail"), 2);
  const CollectiveModel closed(cluster, {}), flow(cluster, {.fidelity = Fidelity::flow});
  for (const std::string_view name : collective_kind_names) {
    const CollectiveKind kind = collective_kind_from_name(name).value();
    if (kind == CollectiveKind::send_recv) continue;
    const auto workload = [&] {
      TestWorkload result(16);
      for (size_t rank = 0; rank < 16; ++rank) result.collective(rank, kind, megabytes);
      return result;
    };
    EXPECT_GT(makespan(workload(), *estimated_network(closed)), 0) << name;
    EXPECT_GT(makespan(workload(), *flow_network(flow)), 0) << name;
  }
}

}  // namespace foretoken::collective_networks_test
