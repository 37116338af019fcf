#include "training/runs/run_row.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <string>

#include "base/error.h"
#include "model/step.h"
#include "model/weights.h"

namespace foretoken::run_row_test {

using Cells = std::map<std::string, std::string>;

// A made-up run of a made-up model.
Cells plain_row() {
  return {{"id", "r1"},
          {"source", "made-up"},
          {"model", "Tiny-GPT"},
          {"task", "pretrain"},
          {"layers", "4"},
          {"hidden", "64"},
          {"heads", "4"},
          {"kv_heads", "4"},
          {"head_dim", "16"},
          {"ffn", "256"},
          {"gated", "0"},
          {"vocab", "1000"},
          {"seq", "128"},
          {"experts", "0"},
          {"topk", "0"},
          {"shared_experts", "0"},
          {"moe_ffn", "0"},
          {"dense_layers", "4"},
          {"attn", "mha"},
          {"gpu", "A100-80GB"},
          {"gpus_per_node", "8"},
          {"n_gpus", "16"},
          {"tp", "2"},
          {"sp", "1"},
          {"cp", "1"},
          {"pp", "2"},
          {"vpp", ""},
          {"dp", "4"},
          {"ep", "1"},
          {"zero", "1"},
          {"micro_batch", ""},
          {"global_batch", "32"},
          {"dtype", "bf16"},
          {"recompute", ""},
          {"iter_time_s", "1.5"},
          {"tflops_per_gpu", ""},
          {"tflops_def", ""},
          {"mfu_pct", ""},
          {"tokens_per_s_per_gpu", ""},
          {"primary", "iter_time_s"},
          {"steps_n", ""},
          {"step_cv", ""},
          {"config_grade", "A"},
          {"notes", "none"}};
}

TrainingRow read_row(const Cells& cells) {
  std::string names, values;
  for (const auto& [name, value] : cells) {
    names += (names.empty() ? "" : ",") + name;
    values += (values.empty() ? "" : ",") + csv_cell(value);
  }
  TrainingRowReader reader(CsvReader::from_text(names + "\n" + values + "\n", "runs.csv"));
  EXPECT_TRUE(reader.next());
  return reader.read();
}

TrainingRow read_with(const std::string& column, const std::string& value) {
  Cells cells = plain_row();
  cells[column] = value;
  return read_row(cells);
}

TEST(TrainingRow, an_empty_cell_is_nothing_and_an_assumption_fills_it) {
  const TrainingRow row = read_row(plain_row());
  EXPECT_FALSE(row.micro_batch);
  EXPECT_FALSE(row.vpp);
  EXPECT_FALSE(row.tokens_per_s_per_gpu);
  EXPECT_EQ(row.iter_time_s, 1.5);
  const TrainingPlan plan = plan_of(row, {.micro_batch = 2, .virtual_stages = 2, .recompute = Recompute::selective});
  EXPECT_EQ(plan.micro_batch, 2);
  EXPECT_EQ(plan.virtual_stages, 2);
  EXPECT_EQ(plan.schedule, "interleaved");
  EXPECT_EQ(plan.recompute, Recompute::selective);
  EXPECT_EQ(plan.sharding, Sharding::optimizer);
  EXPECT_TRUE(plan.parallel.sequence);
  EXPECT_EQ(plan.devices(), row.n_gpus);
  EXPECT_EQ(plan.micro_batches(), 4);
}

TEST(TrainingRow, what_a_source_says_is_not_overridden) {
  Cells cells = plain_row();
  cells["micro_batch"] = "4";
  cells["vpp"] = "1";
  cells["recompute"] = "full";
  const TrainingPlan plan = plan_of(read_row(cells), {.micro_batch = 2, .virtual_stages = 2});
  EXPECT_EQ(plan.micro_batch, 4);
  EXPECT_EQ(plan.virtual_stages, 1);
  EXPECT_EQ(plan.recompute, Recompute::full);
  EXPECT_EQ(plan.schedule, "1f1b");
}

TEST(TrainingRow, layers_that_divide_only_with_embedding_and_loss_were_shared_out_with_them) {
  EXPECT_FALSE(plan_of(read_with("layers", "8"), {}).embedding_in_split);
  Cells cells = plain_row();
  cells["layers"] = "126";
  cells["dense_layers"] = "126";
  cells["vpp"] = "16";
  const TrainingPlan plan = plan_of(read_row(cells), {});
  EXPECT_TRUE(plan.embedding_in_split);
  EXPECT_TRUE(plan.loss_in_split);
}

TEST(TrainingRow, a_family_fills_what_sizes_leave_open) {
  const Model gpt = model_of(read_row(plain_row()));
  EXPECT_EQ(gpt.position_rows, 128);
  EXPECT_TRUE(gpt.tied_embeddings);
  const Model llama = model_of(read_with("gated", "1"));
  EXPECT_EQ(llama.position_rows, 0);
  EXPECT_FALSE(llama.tied_embeddings);
  EXPECT_EQ(std::get<Attention>(llama.layers[0].mixer).rotary_dim, 16);

  Cells cells = plain_row();
  cells["model"] = "DeepSeekV3";
  cells["gated"] = "1";
  cells["attn"] = "mla";
  EXPECT_EQ(model_of(read_row(cells)).draft_layers.size(), 1);
  cells["notes"] = "DeepSeekV3 (w/o MTP)";
  EXPECT_TRUE(model_of(read_row(cells)).draft_layers.empty());
}

TEST(TrainingRow, a_wrong_cell_is_named_with_its_row_and_column) {
  const auto complaint = [](const std::string& column, const std::string& value) {
    try {
      read_with(column, value);
      return std::string("none");
    } catch (const InputError& error) {
      return error.problem().path;
    }
  };
  EXPECT_EQ(complaint("layers", "0"), "row 1, column layers");
  EXPECT_EQ(complaint("hidden", "many"), "row 1, column hidden");
  EXPECT_EQ(complaint("attn", "linear"), "row 1, column attn");
  EXPECT_EQ(complaint("n_gpus", "17"), "row 1, column n_gpus");
  EXPECT_EQ(complaint("zero", "4"), "row 1, column zero");
  EXPECT_EQ(complaint("iter_time_s", "0"), "row 1, column iter_time_s");
  EXPECT_EQ(complaint("iter_time_s", ""), "none");
}

TEST(TrainingRowNeedsData, every_published_run_is_a_model_and_a_plan) {
  const char* data = std::getenv("FORETOKEN_DATA");
  if (data == nullptr) GTEST_SKIP() << "FORETOKEN_DATA is not set";
  TrainingRowReader reader(std::filesystem::path(data) / "training" / "runs.csv.gz");
  size_t rows = 0;
  while (reader.next()) {
    const TrainingRow row = reader.read();
    const Model model = model_of(row);
    EXPECT_EQ(plan_of(row, {}).devices(), row.n_gpus) << row.id;
    EXPECT_NO_THROW(check_step(model, {.phase = StepPhase::train, .input_len = row.seq}, {})) << row.id;
    ++rows;
  }
  EXPECT_GT(rows, 0);
}

}  // namespace foretoken::run_row_test
