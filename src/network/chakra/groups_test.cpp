#include "network/chakra/groups.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace foretoken::groups_test {

TEST(ChakraGroups, a_node_of_groups_reads_back) {
  const NamedGroups groups = {{"0", {0, 1, 2, 3}}, {"tp", {3, 1}}};
  const ChakraNode node = chakra_group_node(7, groups);
  EXPECT_EQ(node.id, 7U);
  ASSERT_TRUE(node.inputs);
  EXPECT_EQ(groups_in_metadata(node.inputs->values, 4), groups);
}

TEST(ChakraGroups, no_ranks_are_all_ranks_and_names_may_be_numbers) {
  EXPECT_EQ(groups_in_metadata(R"([{"pg_name": 5, "ranks": []}])", 3), (NamedGroups{{"5", {0, 1, 2}}}));
}

TEST(ChakraGroups, other_metadata_is_no_list_of_groups) {
  EXPECT_TRUE(groups_in_metadata("", 4).empty());
  EXPECT_TRUE(groups_in_metadata("['abc']", 4).empty());
  EXPECT_TRUE(groups_in_metadata("}][{", 4).empty());
  EXPECT_TRUE(groups_in_metadata(R"([{"other": 1}])", 4).empty());
}

TEST(ChakraGroups, ranks_that_cannot_be_are_refused) {
  EXPECT_THROW(groups_in_metadata(R"([{"pg_name": "0", "ranks": [4]}])", 4), InputError);
  EXPECT_THROW(groups_in_metadata(R"([{"pg_name": "0", "ranks": [1, 1]}])", 4), InputError);
  EXPECT_THROW(groups_in_metadata(R"([{"pg_name": "0", "ranks": [1], ]}])", 4), InputError);
}

}  // namespace foretoken::groups_test
