#include "serving/steps/step_times.h"

#include <cmath>

#include <gtest/gtest.h>

#include "base/random.h"
#include "serving/steps/nested_table.h"
#include "serving/steps/size_grid.h"
#include "serving/test_support.h"

namespace foretoken::step_times_test {

TEST(StepBatch, counts_tokens_and_sequences_that_yield_one) {
  const PromptChunk prompts[] = {{.new_tokens = 100, .yields_token = false}, {.new_tokens = 20}};
  const StepBatch batch{.decodes = 3, .prompts = prompts};
  EXPECT_EQ(batch.new_tokens(), 123);
  EXPECT_EQ(batch.sampled_tokens(), 4);
}

TEST(EqualChunks, keep_the_tokens_and_the_work_of_unequal_ones) {
  RandomStream random(4, "chunks");
  for (int i = 0; i < 100; ++i) {
    std::vector<PromptChunk> chunks(1 + random.below(5));
    double tokens = 0, work = 0;
    for (PromptChunk& chunk : chunks) {
      chunk = {.new_tokens = static_cast<int64_t>(1 + random.below(500)),
               .context_tokens = static_cast<int64_t>(random.below(2)) * 700};
      const auto fresh = static_cast<double>(chunk.new_tokens);
      tokens += fresh;
      work += fresh * (static_cast<double>(chunk.context_tokens) + fresh / 2);
    }
    const EqualChunks equal = equal_chunks(chunks);
    const double count = static_cast<double>(equal.count);
    EXPECT_EQ(equal.count, static_cast<int64_t>(chunks.size()));
    EXPECT_NEAR(count * equal.new_tokens, tokens, 1e-9 * tokens);
    EXPECT_NEAR(count * equal.new_tokens * (equal.context_tokens + equal.new_tokens / 2), work, 1e-9 * work);
  }
}

double one_by_one(StepTimes& times, const StepBatch& batch, int64_t steps) {
  double sum = 0;
  for (int64_t i = 0; i < steps; ++i) sum += times.step_seconds(grown(batch, i)).value;
  return sum;
}

TEST(StepTimes, a_run_of_decodes_takes_as_long_as_its_steps) {
  LinearTimes straight({.step = 0.01, .token = 1e-5, .context_token = 1e-7});
  // Flat until 1000 tokens of context, steep from there.
  class Bent final : public StepTimes {
    Estimate step_seconds(const StepBatch& batch) override {
      const double context = static_cast<double>(batch.decode_context_tokens) / static_cast<double>(batch.decodes);
      return exactly(0.01 + 1e-5 * std::max(0.0, context - 1000));
    }
  };
  Bent bent;
  for (const int64_t steps : {1, 2, 7, 8, 9, 100, 1001, 5000}) {
    const StepBatch batch{.decodes = 7, .decode_context_tokens = 7 * 700, .longest_decode_context = 900};
    EXPECT_NEAR(straight.decode_run_seconds(batch, steps).value / one_by_one(straight, batch, steps), 1, 1e-9);
    EXPECT_NEAR(bent.decode_run_seconds(batch, steps).value / one_by_one(bent, batch, steps), 1, 1e-4);
  }
}

TEST(NestedTable, gives_what_was_put_in_and_lines_between) {
  NestedTable table;
  for (const int64_t a : {0, 10, 40}) {
    for (const int64_t b : {1, 2, 8}) table.add(std::array<int64_t, 2>{a, b}, static_cast<double>(3 * a + 5 * b));
  }
  for (const double a : {0.0, 4.0, 10.0, 25.0, 80.0}) {
    for (const double b : {1.0, 1.5, 2.0, 7.0, 16.0}) {
      EXPECT_DOUBLE_EQ(table.at(std::array<double, 2>{a, b}), 3 * a + 5 * b) << a << " " << b;
    }
  }
  EXPECT_DOUBLE_EQ(table.at(std::array<double, 2>{-5, 1}), 5);  // no slope is known before the first point
}

TEST(NestedTable, follows_both_lines_of_a_bend_where_asked_to) {
  constexpr double knee = 1300;
  const auto time = [](double x) { return std::max(x, knee + 4 * (x - knee)); };
  NestedTable table;
  for (const int64_t x : {256, 512, 1024, 2048, 4096}) {
    table.add(std::array<int64_t, 1>{x}, time(static_cast<double>(x)));
  }
  for (const double x : {300.0, 700.0, 1100.0, 1300.0, 1500.0, 2000.0, 3000.0}) {
    EXPECT_NEAR(table.at(std::array<double, 1>{x}, NestedTable::Between::bends), time(x), 1e-9) << x;
    EXPECT_GE(table.at(std::array<double, 1>{x}), time(x) - 1e-9) << x;
  }
}

TEST(SizeGrid, cells_follow_each_other_without_gaps) {
  for (const int64_t steps : {2, 4}) {
    SizeCell last = size_cell(0, steps);
    for (int64_t size = 1; size < 5000; ++size) {
      const SizeCell cell = size_cell(static_cast<double>(size), steps);
      EXPECT_LE(cell.lower, size);
      EXPECT_GT(cell.upper, size);
      EXPECT_LE(cell.upper - cell.lower, std::max<int64_t>(1, cell.lower / steps));
      if (cell.index != last.index) {
        EXPECT_EQ(cell.index, last.index + 1);
        EXPECT_EQ(cell.lower, last.upper);
      }
      last = cell;
    }
  }
}

TEST(SizeGrid, is_exact_for_straight_functions_and_asks_once_for_each_node) {
  SizeGrid<2, 4> grid;
  int64_t asked = 0;
  RandomStream random(1, "grid");
  const auto at_node = [&](const std::array<int64_t, 2>& node) {
    ++asked;
    return exactly(1 + 2 * static_cast<double>(node[0]) + 3 * static_cast<double>(node[1]));
  };
  for (int i = 0; i < 10'000; ++i) {
    const double a = random.uniform(0, 300), b = random.uniform(0, 300);
    EXPECT_NEAR(grid.at(7, {a, b}, at_node).value, 1 + 2 * a + 3 * b, 1e-9);
  }
  EXPECT_LT(asked, 32 * 32);
}

}  // namespace foretoken::step_times_test
