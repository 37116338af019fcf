#include "accelerator/sparse/format.h"

#include <gtest/gtest.h>

#include "accelerator/sparse/fiber.h"

namespace foretoken::format_test {

// A tile of 8 rows of 16 words.
const std::vector<FiberRank> rows_of_words = {{.coordinates = 8, .inside = {1, 16}},
                                              {.coordinates = 16, .inside = {1, 1}}};

StoredTile stored_as(std::vector<FormatKind> kinds, double density) {
  std::vector<RankFormat> formats;
  for (const FormatKind kind : kinds) formats.push_back({.kind = kind});
  constexpr int word_bits = 4;
  return stored_tile(formats, rows_of_words, *make_uniform_density(density, 128), word_bits);
}

TEST(Formats, have_names_that_are_found_again) {
  for (const std::string& name : format_names()) EXPECT_TRUE(find_format(name)) << name;
  EXPECT_FALSE(find_format("CSR"));
}

TEST(Formats, a_bitmask_takes_a_bit_for_every_word) {
  for (const double density : {0.1, 0.5, 1.0}) {
    const StoredTile tile = stored_as({FormatKind::uncompressed, FormatKind::bitmask}, density);
    EXPECT_EQ(tile.metadata_bits, 128);
    EXPECT_NEAR(tile.share, density, 1e-12);
  }
}

TEST(Formats, coordinates_and_runs_take_a_word_for_every_nonzero) {
  for (const FormatKind kind : {FormatKind::coordinates, FormatKind::run_length}) {
    const StoredTile tile = stored_as({FormatKind::uncompressed, kind}, 0.25);
    EXPECT_NEAR(tile.metadata_words, 32, 1e-9);
    EXPECT_NEAR(tile.metadata_bits, 4 * 32, 1e-9);
    EXPECT_NEAR(tile.share, 0.25, 1e-12);
  }
}

TEST(Formats, compressed_rows_are_offsets_over_coordinates) {
  const StoredTile tile = stored_as({FormatKind::offsets, FormatKind::coordinates}, 0.25);
  EXPECT_NEAR(tile.metadata_words, (8 + 1) + 32, 1e-9);
}

TEST(Formats, what_is_not_compressed_is_stored_whole_and_needs_nothing) {
  const StoredTile tile = stored_as({FormatKind::uncompressed, FormatKind::uncompressed}, 0.25);
  EXPECT_EQ(tile.metadata_bits, 0);
  EXPECT_EQ(tile.share, 1);
}

TEST(Formats, whole_rows_can_be_left_out_with_their_words_kept) {
  const StoredTile tile = stored_as({FormatKind::bitmask, FormatKind::uncompressed}, 0.05);
  const double nonempty = 1 - make_uniform_density(0.05, 128)->empty_probability(std::vector<double>{1, 16});
  EXPECT_EQ(tile.metadata_bits, 8);
  EXPECT_NEAR(tile.share, nonempty, 1e-12);
}

TEST(Formats, fewer_nonzeros_never_take_more_room) {
  for (const FormatKind outer : {FormatKind::uncompressed, FormatKind::offsets, FormatKind::coordinates}) {
    for (const FormatKind inner : {FormatKind::bitmask, FormatKind::coordinates, FormatKind::run_length}) {
      StoredTile before;
      before.share = 0;
      for (const double density : {0.0, 0.125, 0.25, 0.5, 1.0}) {
        const StoredTile tile = stored_as({outer, inner}, density);
        EXPECT_GE(tile.share, before.share);
        EXPECT_GE(tile.metadata_bits, before.metadata_bits);
        before = tile;
      }
      EXPECT_EQ(before.share, 1);
    }
  }
}

// A[m,k] kept outside with loops m 4, k 2 down to tiles of 2 x 8, which lie in a buffer.
struct TwoLevels {
  Problem problem = gemm_problem({.m = 8, .n = 1, .k = 16});
  Architecture architecture{.levels = {{.name = "outside"}, {.name = "buffer"}, {.kind = LevelKind::compute}}};
  int a = find_tensor(problem, "A"), m = find_dimension(problem, "M"), k = find_dimension(problem, "K");
  Mapping mapping{.loops = {{.level = 0, .dimension = m, .bound = 4, .last = 4},
                            {.level = 0, .dimension = k, .bound = 2, .last = 2},
                            {.level = 1, .dimension = m, .bound = 2, .last = 2},
                            {.level = 1, .dimension = k, .bound = 8, .last = 8}},
                  .kept = {7, 7}};
  SparsityDescription sparsity = without_sparsity(architecture, problem);

  std::vector<double> coordinates(int level) const {
    std::vector<double> counts;
    for (const FiberRank& rank : fiber_ranks(problem, mapping, sparsity, a, level)) counts.push_back(rank.coordinates);
    return counts;
  }
};

TEST(FiberRanks, outer_ranks_take_the_loops_of_their_level) {
  TwoLevels two;
  two.sparsity.levels[0].formats[two.a] = {{.kind = FormatKind::offsets, .dimensions = {two.m, two.k}},
                                           {.kind = FormatKind::run_length}};
  EXPECT_EQ(two.coordinates(0), (std::vector<double>{8, 16}));
  two.sparsity.levels[0].formats[two.a].insert(two.sparsity.levels[0].formats[two.a].begin(),
                                               {.kind = FormatKind::offsets});
  EXPECT_EQ(two.coordinates(0), (std::vector<double>{4, 2, 16}));
}

TEST(FiberRanks, follow_the_ranks_further_in) {
  TwoLevels two;
  two.sparsity.levels[1].formats[two.a] = {{.kind = FormatKind::offsets}, {.kind = FormatKind::coordinates}};
  EXPECT_EQ(two.coordinates(1), (std::vector<double>{2, 8}));
  two.sparsity.levels[0].formats[two.a] = {
      {.kind = FormatKind::offsets}, {.kind = FormatKind::offsets}, {.kind = FormatKind::coordinates}};
  EXPECT_EQ(two.coordinates(0), (std::vector<double>{8, 2, 8}));
}

TEST(FiberRanks, one_rank_takes_all) {
  TwoLevels two;
  two.sparsity.levels[0].formats[two.a] = {{.kind = FormatKind::bitmask}};
  EXPECT_EQ(two.coordinates(0), (std::vector<double>{128}));
}

}  // namespace foretoken::format_test
