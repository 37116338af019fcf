#include "kernel/fewshot/spaces/list.h"

#include <algorithm>
#include <cmath>
#include <set>

#include <gtest/gtest.h>

#include "base/error.h"

namespace foretoken::spaces_list_test {

std::vector<double> described(const ArchitectureSpace& space, const std::vector<std::string>& cells) {
  return space.features(std::vector<std::string_view>(cells.begin(), cells.end()),
                        [](size_t cell, std::string expected) {
                          throw InputError({.path = std::to_string(cell), .expected = expected});
                        });
}

double feature(const ArchitectureSpace& space, const std::vector<std::string>& cells, const std::string& name) {
  const std::vector<std::string> names = space.feature_names();
  const auto found = std::find(names.begin(), names.end(), name);
  EXPECT_NE(found, names.end()) << name;
  return described(space, cells)[static_cast<size_t>(found - names.begin())];
}

TEST(ArchitectureSpaces, every_drawn_architecture_has_one_finite_value_per_feature_name) {
  for (const ArchitectureSpace& space : architecture_spaces()) {
    const std::vector<std::string> names = space.feature_names();
    EXPECT_EQ(std::set<std::string>(names.begin(), names.end()).size(), names.size()) << space.name;
    RandomStream stream(1, space.name);
    for (int draw = 0; draw < 50; ++draw) {
      const std::vector<std::string> cells = space.draw(stream);
      ASSERT_EQ(cells.size(), space.columns.size());
      const std::vector<double> values = described(space, cells);
      ASSERT_EQ(values.size(), names.size()) << space.name;
      for (size_t f = 0; f < values.size(); ++f) EXPECT_TRUE(std::isfinite(values[f])) << names[f];
    }
  }
}

TEST(ArchitectureSpaces, different_architectures_have_different_features) {
  for (const ArchitectureSpace& space : architecture_spaces()) {
    RandomStream stream(2, space.name);
    const std::vector<std::string> one = space.draw(stream), other = space.draw(stream);
    ASSERT_NE(one, other);
    EXPECT_NE(described(space, one), described(space, other)) << space.name;
  }
}

TEST(ArchitectureSpaces, broken_cells_are_refused) {
  for (const ArchitectureSpace& space : architecture_spaces()) {
    RandomStream stream(3, space.name);
    const std::vector<std::string> cells = space.draw(stream);
    for (size_t c = 0; c < cells.size(); ++c) {
      for (const std::string& broken : {std::string(), cells[c] + "x", std::string("-"), std::string("99999999999")}) {
        std::vector<std::string> wrong = cells;
        wrong[c] = broken;
        EXPECT_THROW(described(space, wrong), InputError) << space.name << " " << broken;
      }
    }
  }
}

TEST(ArchitectureSpaces, an_unknown_name_suggests_the_nearest) {
  try {
    architecture_space("nasbench");
    FAIL();
  } catch (const InputError& error) {
    EXPECT_EQ(error.problem().suggestion, "nasbench201");
  }
}

TEST(NasBench201, edges_off_every_way_to_the_output_do_not_count_as_live) {
  const ArchitectureSpace& space = architecture_space("nasbench201");
  EXPECT_EQ(feature(space, {"300000"}, "disconnected"), 1);
  EXPECT_EQ(feature(space, {"300000"}, "live_conv3"), 0);
  EXPECT_EQ(feature(space, {"300000"}, "count_conv3"), 1);
  EXPECT_EQ(feature(space, {"300020"}, "live_conv3"), 1);
  EXPECT_EQ(feature(space, {"303003"}, "path_work"), 27);
}

TEST(FbNet, a_wider_block_costs_more_and_a_skip_nothing) {
  const ArchitectureSpace& space = architecture_space("fbnet");
  const std::string skips(22, '8');
  std::string narrow = skips, wide = skips;
  narrow[5] = '0';
  wide[5] = '3';
  EXPECT_LT(feature(space, {skips}, "log_flops"), feature(space, {narrow}, "log_flops"));
  EXPECT_LT(feature(space, {narrow}, "log_flops"), feature(space, {wide}, "log_flops"));
}

}  // namespace foretoken::spaces_list_test
