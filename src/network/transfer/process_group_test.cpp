#include "network/transfer/process_group.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "network/test_clusters.h"

namespace foretoken::process_group_test {

TEST(ProcessGroup, refuses_what_is_no_group) {
  EXPECT_THROW(ProcessGroup::strided(0, 0), InputError);
  EXPECT_THROW(ProcessGroup::strided(-1, 2), InputError);
  EXPECT_THROW(ProcessGroup::strided(0, 2, 0), InputError);
  EXPECT_THROW(ProcessGroup::strided(0, int64_t{1} << 40), InputError);
  EXPECT_THROW(ProcessGroup::of({}), InputError);
  EXPECT_THROW(ProcessGroup::of({0, 3, 0}), InputError);
  EXPECT_THROW(ProcessGroup::of({0, -1}), InputError);
  EXPECT_THROW(check_group(ProcessGroup::strided(0, 9), 8, "a node"), InputError);
  EXPECT_NO_THROW(check_group(ProcessGroup::strided(0, 8), 8, "a node"));
}

TEST(ProcessGroup, is_laid_out_by_node_in_the_order_of_its_ranks) {
  const GroupLayout layout = group_layout(ProcessGroup::of({9, 0, 8, 3}), 8, false);
  EXPECT_EQ(layout.devices, (std::vector<int32_t>{9, 8, 0, 3}));
  EXPECT_EQ(layout.first_places, (std::vector<int64_t>{0, 2, 4}));
  EXPECT_EQ(layout.place_of(0), 2);
}

bool same(const GroupShape& a, const GroupShape& b) {
  return a.ranks == b.ranks && a.nodes == b.nodes && a.most_per_node == b.most_per_node &&
         a.fewest_per_node == b.fewest_per_node && a.most_per_card == b.most_per_card &&
         a.leaf_groups == b.leaf_groups && a.nodes_per_leaf == b.nodes_per_leaf && a.most_per_leaf == b.most_per_leaf;
}

TEST(ProcessGroup, has_the_same_shape_whether_its_members_are_listed_or_not) {
  for (const ClusterFabricKind kind : {ClusterFabricKind::rail_optimized, ClusterFabricKind::fat_tree}) {
    for (const int cards : {8, 4, 16}) {
      const Cluster cluster = test_cluster({.nodes = 16, .cards = cards, .nodes_per_leaf = 4, .kind = kind});
      for (const int64_t stride : {1, 2, 4, 8, 16}) {
        for (const int64_t count : {1, 4, 8, 16}) {
          if (stride * count > 128) continue;
          const ProcessGroup group = ProcessGroup::strided(0, count, stride);
          std::vector<int32_t> listed;
          for (int64_t rank = 0; rank < count; ++rank) listed.push_back(static_cast<int32_t>(group.device(rank)));
          EXPECT_TRUE(same(group_shape(group, cluster), group_shape(ProcessGroup::of(listed), cluster)))
              << cluster_fabric_name(kind) << ", " << cards << " cards, " << count << " ranks " << stride << " apart";
        }
      }
    }
  }
}

}  // namespace foretoken::process_group_test
