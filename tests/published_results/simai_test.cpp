// SimAI's efficiency curves of all-reduce between nodes (aliyun/SimAI, inputs/ratio/nic_ratio.csv), which nothing here
// was fitted to. The file is not part of the project: FORETOKEN_DATA names the folder that holds it.
#include <cmath>
#include <cstdlib>
#include <filesystem>

#include <gtest/gtest.h>

#include "base/csv.h"
#include "hardware/catalogue.h"
#include "network/collective_estimate.h"

namespace foretoken::simai_test {

namespace fs = std::filesystem;

// The curves state no hardware. They fall with nodes as a ring does, and are compared with rings of nodes of eight
// H100s with eight cards of 50 GB/s.
TEST(SimAiNeedsData, rings_between_2_to_128_nodes_reach_the_share_of_the_cards_that_simai_tabulates) {
  const char* folder = std::getenv("FORETOKEN_DATA");
  if (folder == nullptr) GTEST_SKIP() << "FORETOKEN_DATA is not set";
  const Cluster cluster = HardwareCatalogue(FORETOKEN_SOURCE_DIR "/data/hardware").cluster("h100_ib_rail");
  const double nominal = network_bandwidth_per_device(cluster.node)->value() * cluster.node.device_count;
  CsvReader csv(fs::path(folder) / "comm" / "simai_busbw_ratio.csv");
  const size_t table = csv.column("table"), bytes = csv.column("bytes"), nodes = csv.column("nodes"),
               ratio = csv.column("ratio_to_nominal_busbw");
  double sum = 0, worst = 0;
  int count = 0;
  while (csv.next()) {
    const auto node_count = static_cast<int>(csv.integer(nodes, {.least = 1, .most = 1024}));
    if (csv.cell(table) != "nic" || node_count == 1) continue;
    const CollectiveModel model(cluster_with_nodes(cluster, node_count), {});
    const CollectiveEstimate estimate = model.estimate({.bytes = csv.number(bytes),
                                                        .group = ProcessGroup::strided(0, int64_t{8} * node_count),
                                                        .choice = {.algorithm = "ring", .protocol = Protocol::simple}});
    const double error = std::abs(csv.number(ratio) / (estimate.bus_bandwidth / nominal) - 1);  // of the time
    sum += error;
    worst = std::max(worst, error);
    ++count;
  }
  ASSERT_GT(count, 70);
  EXPECT_LT(sum / count, 0.12);
  EXPECT_LT(worst, 0.35);
}

}  // namespace foretoken::simai_test
