#include "hardware/cluster.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "hardware/catalogue.h"
#include "hardware/usual_cluster.h"

namespace foretoken::cluster_test {

HardwareCatalogue shipped() {
  return HardwareCatalogue(FORETOKEN_SOURCE_DIR "/data/hardware");
}

TEST(Node, every_shipped_node_loads) {
  const HardwareCatalogue catalogue = shipped();
  for (const char* name :
       {"hgx_a100", "hgx_h100", "hgx_h200", "hgx_b200", "hgx_b300", "gb200_nvl72", "l40s_pcie", "rtx_pro_6000_pcie",
        "mi300x_platform", "hgx_a100_40gb", "hgx_a100_4nic", "hgx_h800", "gb300_nvl72", "l40s_pcie_4"}) {
    const Node node = catalogue.node(name);
    EXPECT_EQ(node.name, name);
    EXPECT_GT(pair_bandwidth(node).value(), 0) << name;
  }
  EXPECT_EQ(catalogue.node("gb200_nvl72").device_count, 72);
  EXPECT_EQ(catalogue.node("gb200_nvl72").host_devices->value, 4);
  EXPECT_FALSE(catalogue.node("hgx_h100").host_devices);
}

TEST(Node, a_switch_gives_a_pair_the_full_rate_and_a_mesh_one_link) {
  const HardwareCatalogue catalogue = shipped();
  EXPECT_EQ(pair_bandwidth(catalogue.node("hgx_h100")).value(), 450e9);
  EXPECT_EQ(pair_bandwidth(catalogue.node("mi300x_platform")).value(), 64e9);
  EXPECT_EQ(pair_bandwidth(catalogue.node("l40s_pcie")).value(), 32e9);
  EXPECT_EQ(pair_bandwidth(catalogue.node("tpu_v5e_8")).value(), 50e9) << "two links at a corner of the grid";
  EXPECT_EQ(pair_bandwidth(catalogue.node("trn2_48xlarge")).value(), 160e9) << "four links of a torus";
}

TEST(Node, the_host_and_the_cards_are_known_where_a_maker_fixed_them) {
  const Node node = shipped().node("hgx_h100");
  ASSERT_TRUE(node.host);
  EXPECT_EQ(node.host->cpu.processors->value, 56);
  EXPECT_EQ(node.host->count, 2);
  EXPECT_EQ(network_bandwidth_per_device(node)->value(), 50e9);
  EXPECT_FALSE(network_bandwidth_per_device(shipped().node("l40s_pcie")));
}

TEST(Cluster, every_shipped_cluster_loads) {
  const HardwareCatalogue catalogue = shipped();
  for (const char* name :
       {"h100_ib_rail", "h200_roce_fat_tree", "a100_ib_rail", "b200_ib_rail", "a100_ib_4nic", "a100_roce_fat_tree",
        "a100_40gb_roce_fat_tree", "h100_roce_pods", "h800_ib_rail", "b300_ib_rail", "gb200_nvl72_ib", "gb300_nvl72_ib",
        "l40s_roce", "p5_efa", "p4de_efa", "p6_b200_efa", "tcpxo_a3_mega"}) {
    EXPECT_EQ(catalogue.cluster(name).name, name);
  }
}

TEST(Cluster, networks_of_one_cloud_are_never_assumed) {
  const HardwareCatalogue catalogue = shipped();
  for (const char* name : {"p5_efa", "p4de_efa", "p6_b200_efa", "tcpxo_a3_mega"}) {
    const Cluster cluster = catalogue.cluster(name);
    EXPECT_FALSE(cluster.is_usual) << name;
    EXPECT_NE(usual_cluster(catalogue, cluster.node).name, name);
  }
  EXPECT_EQ(usual_cluster(catalogue, catalogue.node("hgx_h100")).name, "h100_ib_rail");
}

TEST(Cluster, devices_that_share_cards_share_their_rate) {
  const HardwareCatalogue catalogue = shipped();
  EXPECT_EQ(bandwidth_within_leaf(catalogue.cluster("a100_ib_4nic")).value(), 12.5e9);
  EXPECT_EQ(bandwidth_within_leaf(catalogue.cluster("a100_ib_rail")).value(), 25e9);
  EXPECT_EQ(bandwidth_within_leaf(catalogue.cluster("l40s_roce")).value(), 25e9);
}

TEST(Cluster, devices_are_numbered_node_by_node) {
  const Cluster cluster = cluster_with_nodes(shipped().cluster("h100_ib_rail"), 4);
  EXPECT_EQ(devices_per_node(cluster), 8);
  EXPECT_EQ(total_devices(cluster), 32);
  EXPECT_TRUE(same_node(cluster, 0, 7));
  EXPECT_FALSE(same_node(cluster, 7, 8));
  EXPECT_THROW(node_of(cluster, 32), InternalError);
  EXPECT_THROW(node_of(cluster, -1), InternalError);
}

TEST(Cluster, the_number_of_nodes_is_checked) {
  const Cluster cluster = shipped().cluster("h100_ib_rail");
  EXPECT_THROW(cluster_with_nodes(cluster, 0), InputError);
  EXPECT_THROW(cluster_with_nodes(cluster, -3), InputError);
  EXPECT_THROW(cluster_with_nodes(cluster, most_nodes + 1), InputError);
  EXPECT_EQ(total_devices(cluster_with_nodes(cluster, most_nodes)), int64_t{8} * most_nodes);
}

TEST(Cluster, the_slower_of_card_and_port_counts) {
  Cluster cluster = shipped().cluster("h100_ib_rail");
  EXPECT_EQ(card_bandwidth(cluster).value(), 50e9);
  cluster.fabric.nic_bandwidth.value = BytesPerSecond(25e9);
  EXPECT_EQ(card_bandwidth(cluster).value(), 25e9);
  cluster.fabric.nic_bandwidth.value = BytesPerSecond(100e9);
  EXPECT_EQ(card_bandwidth(cluster).value(), 50e9);
}

TEST(Cluster, shared_cards_halve_the_share) {
  Cluster cluster = shipped().cluster("h100_ib_rail");
  EXPECT_EQ(bandwidth_within_leaf(cluster).value(), 50e9);
  cluster.node.network_cards->count.value = 4;
  EXPECT_EQ(bandwidth_within_leaf(cluster).value(), 25e9);
}

TEST(Cluster, oversubscription_does_not_slow_what_stays_in_a_leaf) {
  Cluster cluster = shipped().cluster("h100_ib_rail");
  cluster.fabric.oversubscription.value = 2;
  EXPECT_EQ(bandwidth_within_leaf(cluster).value(), 50e9);
}

}  // namespace foretoken::cluster_test
