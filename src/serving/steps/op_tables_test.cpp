#include "serving/steps/op_tables.h"

#include <filesystem>

#include <gtest/gtest.h>

#include "base/error.h"
#include "base/file.h"

namespace foretoken::op_tables_test {

namespace fs = std::filesystem;

class OpTables : public testing::Test {
 protected:
  void SetUp() override {
    fs::remove_all(folder_);
    fs::create_directories(folder_);
    write("dense",
          "layer,tokens,time_us\nembedding,1,1\nembedding,100,1\nlayernorm,1,2\nlayernorm,100,2\n"
          "qkv_proj,1,10\nqkv_proj,100,109\n");
    write("per_sequence", "layer,sequences,time_us\nlm_head,1,50\nlm_head,101,150\n");
    write("attention",
          "prefill_chunk,kv_prefill,n_decode,kv_decode,time_us\n"
          "0,0,1,0,4\n0,0,1,1000,24\n0,0,9,0,12\n0,0,9,1000,192\n"
          "100,0,0,0,30\n100,0,1,0,34\n100,0,1,1000,54\n");
  }
  void TearDown() override { fs::remove_all(folder_); }

  void write(const std::string& table, const std::string& text) { write_file(folder_ / (table + ".csv"), text); }
  std::unique_ptr<StepTimes> read(std::vector<int64_t> graph_sizes = {}) {
    return read_op_tables(folder_, {.layers = 10, .tensor = 1, .graph_sizes = std::move(graph_sizes)});
  }

  fs::path folder_ = fs::path(testing::TempDir()) / "op_tables_test";
};

// One decode: embedding 1, layernorms 2 x 2 x 10, qkv 10 x 10, head 50, attention 10 x (4 + 20 x context / 1000).
constexpr double fixed_us = 1 + 40 + 100 + 50;

TEST_F(OpTables, a_step_is_the_sum_of_its_operators) {
  const StepBatch decode{.decodes = 1, .decode_context_tokens = 500, .longest_decode_context = 500};
  EXPECT_NEAR(read()->step_seconds(decode).value * 1e6, fixed_us + 10 * 14, 1e-9);
}

TEST_F(OpTables, steps_are_padded_to_captured_sizes) {
  const StepBatch decode{.decodes = 1, .decode_context_tokens = 500, .longest_decode_context = 500};
  // 8 tokens instead of one: qkv takes 7 us more.
  EXPECT_NEAR(read({8, 16})->step_seconds(decode).value * 1e6, fixed_us + 10 * 7 + 10 * 14, 1e-9);
}

// Nine decodes take 12 + 180 x context / 1000 us in each layer; the skew rows say three times as much.
class OpTablesWithSkew : public OpTables {
 protected:
  void SetUp() override {
    OpTables::SetUp();
    write("skew",
          "regime,n,nb,ratio,skew,pc,kp,kvs,kv_big,kv_mean,t_mean_us,t_max_us,t_skew_us,alpha\n"
          "pure,9,1,0.1,8.0,0,0,275,2000,500,306,1116,600,0.36\n"
          "mixed,64,32,0.5,4.0,16,0,256,1024,640,100,200,110,0.1\n");
  }
  // Microseconds of one layer that unequal contexts add, mean 400.
  double added(StepTimes& times, int64_t longest, std::span<const PromptChunk> prompts = {}) {
    StepBatch batch{.decodes = 9, .decode_context_tokens = 9 * 400, .longest_decode_context = 400, .prompts = prompts};
    const double equal = times.step_seconds(batch).value;
    batch.longest_decode_context = longest;
    return (times.step_seconds(batch).value - equal) * 1e6 / 10;
  }
  std::unique_ptr<StepTimes> read_on(int64_t processors) {
    return read_op_tables(folder_, {.layers = 10, .processors = processors, .key_heads = 2});
  }
};

TEST_F(OpTablesWithSkew, the_longest_decode_walks_on_where_contexts_are_not_split) {
  // Nine run side by side: the longest of 2000 took 200 us, 84 take as long as all at the mean of 400.
  const auto times = read_on(9);
  EXPECT_NEAR(added(*times, 840), 0, 1e-9);
  EXPECT_NEAR(added(*times, 1000), 0.1 * 1000 - 84, 1e-9);
  EXPECT_NEAR(added(*times, 2000), 0.1 * 2000 - 84, 1e-9);
}

TEST_F(OpTablesWithSkew, the_longest_decode_waits_for_a_place) {
  // Six run side by side. In the skew row the longest waits for a third of 102 us, here its place is three quarters of
  // the way through the blocks.
  const double pace = (200 - 102 / 3.0) / 2000;
  EXPECT_NEAR(added(*read_on(6), 2000), (0.75 - 6 / 9.0) * 84 + pace * 2000 - 84, 1e-9);
}

TEST_F(OpTablesWithSkew, split_contexts_take_as_long_as_their_mean) {
  EXPECT_EQ(added(*read_on(12), 2000), 0);
}

TEST_F(OpTablesWithSkew, beside_a_prompt_unequal_decodes_lie_between_the_mean_and_the_longest) {
  write("attention",
        "prefill_chunk,kv_prefill,n_decode,kv_decode,time_us\n"
        "0,0,9,0,12\n0,0,9,1000,192\n100,0,9,0,20\n100,0,9,1000,200\n");
  const std::vector<PromptChunk> prompt = {{.new_tokens = 100}};
  EXPECT_NEAR(added(*read_on(9), 900, prompt), 0.1 * 90, 1e-9);
}

TEST_F(OpTables, without_skew_only_the_mean_counts) {
  const StepBatch equal{.decodes = 9, .decode_context_tokens = 9 * 400, .longest_decode_context = 400};
  const StepBatch unequal{.decodes = 9, .decode_context_tokens = 9 * 400, .longest_decode_context = 900};
  EXPECT_EQ(read()->step_seconds(unequal).value, read()->step_seconds(equal).value);
}

TEST_F(OpTables, a_chunk_whose_token_is_not_sampled_has_no_head) {
  PromptChunk chunk{.new_tokens = 100};
  const auto times = read();
  const double with_head = times->step_seconds({.prompts = {&chunk, 1}}).value;
  chunk.yields_token = false;
  EXPECT_NEAR((with_head - times->step_seconds({.prompts = {&chunk, 1}}).value) * 1e6, 50, 1e-9);
}

TEST_F(OpTables, tables_of_a_rank_lie_in_a_folder_of_their_own) {
  const fs::path rank = folder_ / "tp1";
  fs::create_directories(rank);
  for (const char* table : {"dense.csv", "per_sequence.csv", "attention.csv"})
    fs::rename(folder_ / table, rank / table);
  EXPECT_GT(read()->step_seconds({.decodes = 1}).value, 0);
}

TEST_F(OpTables, tables_that_lead_nowhere_are_refused_where_the_run_needs_them) {
  const std::map<std::string, std::string> falling = {
      {"dense", "layer,tokens,time_us\nqkv_proj,1,100\nqkv_proj,2,1\n"},
      {"per_sequence", "layer,sequences,time_us\nlm_head,1,1\n"},
      {"attention", "prefill_chunk,kv_prefill,n_decode,kv_decode,time_us\n0,0,1,16,1\n"}};
  const auto times = op_tables_from_text(falling, {.layers = 1});
  EXPECT_GT(times->step_seconds({.decodes = 1, .decode_context_tokens = 10, .longest_decode_context = 10}).value, 0);
  EXPECT_THROW(times->step_seconds({.decodes = 100, .decode_context_tokens = 10, .longest_decode_context = 1}),
               InputError);
  std::map<std::string, std::string> empty = falling;
  empty["dense"] = "layer,tokens,time_us\n";
  EXPECT_THROW(op_tables_from_text(empty, {}), InputError);
}

TEST_F(OpTables, a_missing_table_or_a_broken_row_is_named) {
  write("attention", "prefill_chunk,kv_prefill,n_decode,kv_decode,time_us\n0,0,1,-5,4\n");
  try {
    read();
    FAIL() << "a negative size is an error";
  } catch (const InputError& error) {
    EXPECT_EQ(error.problem().line, 2);
  }
  fs::remove(folder_ / "dense.csv");
  EXPECT_THROW(read(), InputError);
}

}  // namespace foretoken::op_tables_test
