#include "accelerator/dram_rows.h"

#include <gtest/gtest.h>

#include "accelerator/evaluator.h"

namespace foretoken::dram_rows_test {

constexpr DramRows small_rows{.row_bytes = 64, .banks = 4, .switch_ns = 100};

Architecture chip(const DramRows& rows) {
  Architecture own{.name = "chip",
                   .clock_hz = 1e9,
                   .levels = {{.name = "DRAM", .bandwidth = {.shared = 1}},
                              {.name = "buffer", .depth = 1024, .buffers = 2},
                              {.name = "multiplier", .kind = LevelKind::compute}}};
  own.levels.front().rows = rows;
  return own;
}

// Z[m,n] += A[m,k] B[k,n] with one row of A, B read word by word: along its rows, or down its columns.
Evaluation product(const DramRows& rows, bool along_rows, int64_t n = 256, int64_t k = 128) {
  const Problem problem = gemm_problem({.m = 1, .n = n, .k = k});
  const int outer = find_dimension(problem, along_rows ? "K" : "N"),
            inner = find_dimension(problem, along_rows ? "N" : "K");
  const auto size = [&](int d) { return problem.dimensions[d].size; };
  const Mapping mapping{.loops = {{.level = 0, .dimension = outer, .bound = size(outer), .last = size(outer)},
                                  {.level = 0, .dimension = inner, .bound = size(inner), .last = size(inner)}},
                        .kept = {0b111, 0b111}};
  const Architecture own = chip(rows);
  Evaluation result;
  EXPECT_TRUE(MappingEvaluator(own, problem).evaluate(mapping, result));
  return result;
}

TEST(DramRows, words_cost_the_same_wherever_they_lie_unless_rows_are_asked_for) {
  const Evaluation result = product({}, false);
  EXPECT_EQ(result.levels[0].rows_opened, 0);
  EXPECT_EQ(result.levels[0].row_cycles, 0);
  EXPECT_EQ(result.cycles, 256 * 128 + 256 * 128 + 256);  // words of B, of A again for every column, and of Z
}

TEST(DramRows, a_matrix_read_along_its_rows_opens_each_row_about_once) {
  // 256 words anywhere in rows of 64. A pass for each of 128 k: over B, over Z to update it, and but for the first to
  // read it before. A is read once.
  const double rows_of_pass = 1 + 255 / 64.0, rows_of_a = 1 + 127 / 64.0;
  EXPECT_NEAR(product(small_rows, true).levels[0].rows_opened, (128 + 128 + 127) * rows_of_pass + rows_of_a, 1e-6);
}

TEST(DramRows, a_matrix_read_down_its_columns_opens_a_row_for_every_word) {
  const Evaluation down = product(small_rows, false), along = product(small_rows, true);
  EXPECT_GE(down.levels[0].rows_opened, 256 * 128);
  EXPECT_GT(down.cycles, 2 * along.cycles);
  EXPECT_GT(down.latency_cycles(), down.cycles - 1);
}

TEST(DramRows, rows_stay_open_while_there_are_banks_for_them) {
  DramRows many = small_rows;
  many.banks = 256;  // one for each row that a column crosses
  EXPECT_LT(product(many, false).levels[0].rows_opened, 0.1 * product(small_rows, false).levels[0].rows_opened);
}

TEST(DramRows, more_banks_are_never_slower_and_longer_switches_never_faster) {
  double before = 1e300;
  for (const int banks : {1, 2, 4, 8, 64, 512}) {
    DramRows rows = small_rows;
    rows.banks = banks;
    const double cycles = product(rows, false).cycles;
    EXPECT_LE(cycles, before) << banks;
    before = cycles;
    rows.switch_ns *= 2;
    EXPECT_GE(product(rows, false).cycles, cycles) << banks;
  }
}

TEST(DramRows, one_bank_does_everything_in_turn_and_refresh_takes_its_share) {
  const DramRows rows{.row_bytes = 64, .banks = 1, .switch_ns = 10};
  EXPECT_DOUBLE_EQ(cycles_with_rows(rows, 8, 100, 1e9), 180);
  DramRows refreshed = rows;
  refreshed.refresh_share = 0.1;
  EXPECT_DOUBLE_EQ(cycles_with_rows(refreshed, 8, 100, 1e9), 200);
  DramRows banked = rows;
  banked.banks = 8;
  EXPECT_DOUBLE_EQ(cycles_with_rows(banked, 8, 100, 1e9), 100);
  banked.gap_ns = 25;
  EXPECT_DOUBLE_EQ(cycles_with_rows(banked, 8, 100, 1e9), 200);
}

TEST(DramRows, usual_modules_are_known_by_their_component) {
  EXPECT_TRUE(usual_rows("DDR4") && usual_rows("LPDDR4") && usual_rows("HBM3"));
  EXPECT_FALSE(usual_rows("SRAM"));
}

}  // namespace foretoken::dram_rows_test
