// One published training run: what was trained, how it was laid out, and what was measured.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "base/csv.h"
#include "model/model.h"
#include "training/training_plan.h"

namespace foretoken {

// An empty cell means that the source does not say; it is nothing here, never a default.
struct TrainingRow {
  size_t row = 0;  // 1-based data row of the file
  std::string id, source, model;
  std::string task;  // pretrain, sft, lora

  int64_t layers = 1, hidden = 1, heads = 1, kv_heads = 1, head_dim = 1, ffn = 1, vocab = 1, seq = 1;
  bool gated = false;
  int64_t experts = 0, topk = 0, shared_experts = 0, moe_ffn = 0;  // experts 0: a dense model
  int64_t dense_layers = 0;                                        // the first ones have a dense MLP
  std::string attn;                                                // mha, gqa, mla

  std::string gpu;
  int64_t gpus_per_node = 1;  // of the NVLink domain
  int64_t n_gpus = 1, tp = 1, cp = 1, pp = 1, dp = 1, ep = 1;
  bool sp = false;
  int64_t zero = 0;  // ZeRO stage
  std::optional<int64_t> vpp, micro_batch;
  int64_t global_batch = 1;
  std::string dtype;
  std::string recompute;  // none, selective, full, or another choice in the words of the source

  std::optional<double> iter_time_s, tflops_per_gpu, mfu_pct, tokens_per_s_per_gpu;
  std::string tflops_def;  // a name of flop_conventions(), or what the source says of its own
  std::string primary;     // the column that the source prints; the others are derived from it
  std::optional<int64_t> steps_n;
  std::optional<double> step_cv;
  std::string config_grade, notes;

  // Columns that a table may have besides.
  std::string stack, cluster;  // where the source alone does not tell
  int64_t packed = 0;          // tokens of the documents that fill a sequence
  int64_t shard_ranks = 0;     // of a hybrid group (HSDP)
  int64_t lora_rank = 0;       // 0 = 16
  std::string lora_target;     // all, attention, mlp; empty = all where the rank is given, else attention
  std::string optimizer;       // a name of optimizer_state_names()
  std::optional<bool> tied;    // one table for embedding and head; nothing = as the model's family does
  std::optional<bool> clips;   // gradients are clipped
  std::optional<double>
      peak_allocated_gb;  // most that the framework's allocator had handed out on a device, 10^9 bytes
};

// Columns as named above, in any order. InputError, with row and column, for a cell that cannot be.
class TrainingRowReader {
 public:
  explicit TrainingRowReader(const std::filesystem::path& file);
  explicit TrainingRowReader(CsvReader csv);

  bool next() { return csv_.next(); }
  const CsvReader& csv() const { return csv_; }
  TrainingRow read() const;

 private:
  std::string text(std::string_view column) const;
  std::string text_or_none(std::string_view column) const;
  int64_t count_or_none(std::string_view column) const;  // 0 for a column or cell that is not there
  int64_t count(std::string_view column, int64_t least, int64_t most) const;
  std::optional<int64_t> optional_size(std::string_view column, int64_t least, int64_t most) const;
  std::optional<double> optional_number(std::string_view column, double most) const;
  bool flag(std::string_view column) const;
  std::optional<bool> flag_or_nothing(std::string_view column) const;  // for a column or cell that is not there

  CsvReader csv_;
};

// The model of the row's sizes. What sizes do not say (positions, biases, tied tables, windows, latent ranks, draft
// layers) follows from the family that the model's name belongs to.
Model model_of(const TrainingRow& row);

// Whether the source says what was computed again in a form that is known.
bool says_recompute(const TrainingRow& row);

// Seconds of a step: as given, or by the FLOPs that it ran at where their convention is known.
std::optional<double> measured_seconds(const TrainingRow& row, const Model& model);

// What is assumed where the source says nothing.
struct RowAssumptions {
  int64_t micro_batch = 1, virtual_stages = 1;
  Recompute recompute = Recompute::none;
};
TrainingPlan plan_of(const TrainingRow& row, const RowAssumptions& assumed);

}  // namespace foretoken
