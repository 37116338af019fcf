#include "validate/collectives/validate_between_nodes.h"

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
  EXPECT_EQ(all.skipped.size(), 2U);
  EXPECT_EQ(all.groups.at(0).name, "lab");
  EXPECT_THROW(validate_between_nodes({.data = path, .collectives = {"broadcast"}}, library()), InputError);
  EXPECT_THROW(validate_between_nodes({.data = path, .group_by = "tier"}, library()), InputError);
}

// The constants were chosen on the rows marked fitted, the latency of some clouds on their smallest messages.
TEST(ValidateBetweenNodes, holds_what_was_published) {
  const Validation all =
      validate_between_nodes({.data = FORETOKEN_SOURCE_DIR "/data/networks/published/between_nodes.csv"}, library());
  EXPECT_TRUE(all.skipped.empty());
  EXPECT_EQ(all.groups.size(), 4U);
  for (const ValidationGroup& group : all.groups) {
    const bool is_check = group.name == "check" || group.name == "sends";
    EXPECT_LT(group.errors.mape, is_check ? 28 : 20) << group.name;
    EXPECT_GT(group.errors.coverage90, is_check ? 75 : 90) << group.name;
  }
}

}  // namespace foretoken::validate_between_nodes_test
