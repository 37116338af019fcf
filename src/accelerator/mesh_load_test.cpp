#include "accelerator/mesh_load.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <tuple>

namespace foretoken::mesh_load_test {

// One word from every instance to every instance, along X and then Y, counted link by link.
struct Walked {
  double words = 0, links_passed = 0, busiest = 0;
};

Walked walk_all(int across, int down) {
  std::map<std::tuple<int, int, int, int>, double> load;
  Walked all;
  for (int from = 0; from < across * down; ++from) {
    for (int to = 0; to < across * down; ++to) {
      ++all.words;
      int x = from % across, y = from / across;
      const auto step = [&](int dx, int dy) {
        all.busiest = std::max(all.busiest, ++load[{x, y, dx, dy}]);
        ++all.links_passed;
        x += dx;
        y += dy;
      };
      while (x != to % across) step(x < to % across ? 1 : -1, 0);
      while (y != to / across) step(0, y < to / across ? 1 : -1);
    }
  }
  return all;
}

TEST(MeshLoad, uniform_traffic_loads_links_as_a_walk_of_all_pairs_counts) {
  for (int across = 1; across <= 7; ++across) {
    for (int down = 1; down <= 7; ++down) {
      const MeshLinks mesh{.words_per_cycle = 2};
      const MeshSide side{.across = static_cast<double>(across), .down = static_cast<double>(down)};
      const Walked walked = walk_all(across, down);
      const double passed = link_words(mesh, side, walked.words, walked.words);
      EXPECT_NEAR(passed, walked.links_passed, 1e-9 * walked.links_passed) << across << " x " << down;
      EXPECT_NEAR(mesh_cycles(mesh, side, walked.words, passed), walked.busiest / 2, 1e-9 * walked.busiest)
          << across << " x " << down;
    }
  }
}

TEST(MeshLoad, words_for_several_instances_pass_fewer_links_than_copies_do) {
  const MeshLinks mesh{.words_per_cycle = 1};
  const MeshSide side{.across = 6, .down = 6};
  EXPECT_LT(link_words(mesh, side, 100, 3600), 36 * link_words(mesh, side, 100, 100));
  EXPECT_GT(link_words(mesh, side, 100, 3600), link_words(mesh, side, 100, 100));
}

TEST(MeshLoad, ports_limit_what_comes_in) {
  const MeshSide side{.across = 4, .down = 4};
  const auto cycles = [&](int64_t ports) {
    const MeshLinks mesh{.words_per_cycle = 10, .ports = ports};
    return mesh_cycles(mesh, side, 1000, link_words(mesh, side, 1000, 1000));
  };
  EXPECT_DOUBLE_EQ(cycles(1), 100);
  EXPECT_DOUBLE_EQ(cycles(2), 50);
  EXPECT_GE(cycles(1000), 1000 * 3.0 / 48 / 10);  // then the links between
}

TEST(MeshLoad, one_instance_has_nothing_to_cross) {
  const MeshLinks mesh{.words_per_cycle = 1};
  EXPECT_EQ(link_words(mesh, {}, 100, 100), 0);
  EXPECT_EQ(mesh_cycles(mesh, {}, 100, 0), 0);
  EXPECT_EQ(farthest_hops({}), 0);
}

}  // namespace foretoken::mesh_load_test
