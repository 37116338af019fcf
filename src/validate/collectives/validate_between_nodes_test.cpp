#include "validate/collectives/validate_between_nodes.h"

#include <map>

#include <gtest/gtest.h>

#include "base/error.h"
#include "base/file.h"
#include "library/library.h"

namespace foretoken::validate_between_nodes_test {

const Library& library() {
  static const Library one = Library(FORETOKEN_SOURCE_DIR "/data");
  return one;
}

std::filesystem::path written(const std::string& rows) {
  const std::filesystem::path path = std::filesystem::path(testing::TempDir()) / "between_nodes.csv";
  write_file(path, "source,cluster,nodes,gpus_per_node,collective,bytes,latency_us,role\n" + rows);
  return path;
}

TEST(ValidateBetweenNodes, scores_rows_and_names_those_it_cannot_place) {
  const auto path = written(
      "lab,h100_ib_rail,2,8,all_reduce,1048576,70,check\nlab,h100_ib_rail,2,1,all_gather,1048576,70,check\n"
      "lab,h100_ib_rail,2,3,all_reduce,1048576,70,check\nlab,h100_ib_rail,2,8,all_swap,1048576,70,check\n");
  EXPECT_TRUE(is_between_nodes_table(path));
  const Validation all = validate_between_nodes({.data = path, .group_by = "source"}, library());
  EXPECT_EQ(all.overall.n, 2U);
  ASSERT_EQ(all.skipped.size(), 2U);
  EXPECT_EQ(all.skipped[0].why, "gpus_per_node is 3, which does not divide the 8 GPUs of a node");
  EXPECT_EQ(all.skipped[0].row, 3U);
  EXPECT_EQ(all.skipped[1].why, "unknown collective");
  EXPECT_EQ(all.groups.at(0).name, "lab");
  EXPECT_THROW(validate_between_nodes({.data = path, .collectives = {"broadcast"}}, library()), InputError);
  EXPECT_THROW(validate_between_nodes({.data = path, .group_by = "tier"}, library()), InputError);
}

// The constants were chosen on the rows marked fitted, the latency of some clouds on their smallest messages.
TEST(ValidateBetweenNodes, holds_what_was_published) {
  const Validation all =
      validate_between_nodes({.data = FORETOKEN_SOURCE_DIR "/data/networks/published/between_nodes.csv"}, library());
  EXPECT_TRUE(all.skipped.empty());
  // Of docs/accuracy/network.md, with little room.
  struct Limits {
    double most_error = 0, least_inside = 0;  // percent
  };
  const std::map<std::string, Limits> limits = {
      {"fitted", {16, 95}}, {"latency", {10.5, 97}}, {"sends", {19.5, 82}}, {"check", {28, 74}}};
  EXPECT_EQ(all.groups.size(), limits.size());
  for (const ValidationGroup& group : all.groups) {
    ASSERT_TRUE(limits.contains(group.name)) << group.name;
    EXPECT_LT(group.errors.mape, limits.at(group.name).most_error) << group.name;
    EXPECT_GT(group.errors.coverage90, limits.at(group.name).least_inside) << group.name;
  }
}

}  // namespace foretoken::validate_between_nodes_test
