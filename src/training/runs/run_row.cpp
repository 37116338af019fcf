#include "training/runs/run_row.h"

#include <algorithm>
#include <utility>

#include "base/text.h"
#include "training/decoder_sizes.h"
#include "training/flop_conventions.h"

namespace foretoken {
namespace {

constexpr int64_t most_of_a_row = 100'000'000;  // of any size in a table; beyond, the cell holds something else

// What the sizes of a row leave open, by the beginning of the model's name. Published facts of the families.
struct RowFamily {
  std::string_view name;
  bool learned_positions = false, tied = false, biases = false, layer_norm = false, qk_norm = false, sinks = false;
  int64_t window = 0, draft_layers = 0;
};
constexpr RowFamily row_families[] = {
    {.name = "Nemotron", .layer_norm = true},
    {.name = "Qwen3", .qk_norm = true},
    {.name = "GPT OSS", .biases = true, .sinks = true, .window = 128},
    {.name = "DeepSeek", .draft_layers = 1},
};
constexpr RowFamily gpt_family{.learned_positions = true, .tied = true, .biases = true, .layer_norm = true};
constexpr RowFamily llama_family{};

RowFamily family_of(const TrainingRow& row) {
  for (const RowFamily& family : row_families) {
    if (starts_with_ignoring_case(row.model, family.name)) return family;
  }
  return row.gated ? llama_family : gpt_family;
}

}  // namespace

TrainingRowReader::TrainingRowReader(const std::filesystem::path& file) : csv_(file) {}
TrainingRowReader::TrainingRowReader(CsvReader csv) : csv_(std::move(csv)) {}

std::string TrainingRowReader::text(std::string_view column) const {
  return std::string(csv_.cell(csv_.column(column)));
}

std::string TrainingRowReader::text_or_none(std::string_view column) const {
  const std::optional<size_t> found = csv_.find_column(column);
  return found ? std::string(csv_.cell(*found)) : "";
}

int64_t TrainingRowReader::count_or_none(std::string_view column) const {
  const std::optional<size_t> found = csv_.find_column(column);
  return !found || csv_.cell(*found).empty() ? 0 : csv_.integer(*found, {0, most_of_a_row});
}

int64_t TrainingRowReader::count(std::string_view column, int64_t least, int64_t most) const {
  return csv_.integer(csv_.column(column), {least, most});
}

std::optional<int64_t> TrainingRowReader::optional_size(std::string_view column, int64_t least, int64_t most) const {
  if (csv_.cell(csv_.column(column)).empty()) return std::nullopt;
  return count(column, least, most);
}

std::optional<double> TrainingRowReader::optional_number(std::string_view column, double most) const {
  const size_t at = csv_.column(column);
  if (csv_.cell(at).empty()) return std::nullopt;
  const double value = csv_.number(at, {0, most});
  if (value == 0) csv_.fail(at, "a measured value above 0, or an empty field");
  return value;
}

std::optional<bool> TrainingRowReader::flag_or_nothing(std::string_view column) const {
  const std::optional<size_t> found = csv_.find_column(column);
  if (!found || csv_.cell(*found).empty()) return std::nullopt;
  return flag(column);
}

bool TrainingRowReader::flag(std::string_view column) const {
  return count(column, 0, 1) == 1;
}

TrainingRow TrainingRowReader::read() const {
  const auto size = [&](std::string_view column) { return count(column, 1, most_of_a_row); };
  const auto size_or_none = [&](std::string_view column) { return count(column, 0, most_of_a_row); };
  TrainingRow row{.row = csv_.row(),
                  .id = text("id"),
                  .source = text("source"),
                  .model = text("model"),
                  .task = text("task"),
                  .layers = count("layers", 1, 10'000),
                  .hidden = size("hidden"),
                  .heads = size("heads"),
                  .kv_heads = size("kv_heads"),
                  .head_dim = size("head_dim"),
                  .ffn = size_or_none("ffn"),
                  .vocab = size("vocab"),
                  .seq = size("seq"),
                  .gated = flag("gated"),
                  .experts = size_or_none("experts"),
                  .topk = size_or_none("topk"),
                  .shared_experts = count("shared_experts", 0, 1000),
                  .moe_ffn = size_or_none("moe_ffn"),
                  .dense_layers = count("dense_layers", 0, 10'000),
                  .attn = text("attn"),
                  .gpu = text("gpu"),
                  .gpus_per_node = size("gpus_per_node"),
                  .n_gpus = size("n_gpus"),
                  .tp = size("tp"),
                  .cp = size("cp"),
                  .pp = count("pp", 1, 10'000),
                  .dp = size("dp"),
                  .ep = size("ep"),
                  .sp = flag("sp"),
                  .zero = count("zero", 0, 3),
                  .vpp = optional_size("vpp", 1, 10'000),
                  .micro_batch = optional_size("micro_batch", 1, most_of_a_row),
                  .global_batch = size("global_batch"),
                  .dtype = text("dtype"),
                  .recompute = text("recompute"),
                  .iter_time_s = optional_number("iter_time_s", 1e9),
                  .tflops_per_gpu = optional_number("tflops_per_gpu", 1e9),
                  .mfu_pct = optional_number("mfu_pct", 100),
                  .tokens_per_s_per_gpu = optional_number("tokens_per_s_per_gpu", 1e12),
                  .tflops_def = text("tflops_def"),
                  .primary = text("primary"),
                  .steps_n = optional_size("steps_n", 1, most_of_a_row),
                  .step_cv = optional_number("step_cv", 1e6),
                  .config_grade = text("config_grade"),
                  .notes = text("notes"),
                  .stack = text_or_none("stack"),
                  .cluster = text_or_none("cluster"),
                  .packed = count_or_none("packed"),
                  .shard_ranks = count_or_none("shard_ranks"),
                  .lora_rank = count_or_none("lora_rank"),
                  .lora_target = text_or_none("lora_target"),
                  .optimizer = text_or_none("optimizer"),
                  .tied = flag_or_nothing("tied"),
                  .clips = flag_or_nothing("clips")};
  if (csv_.find_column("peak_allocated_gb")) row.peak_allocated_gb = optional_number("peak_allocated_gb", 1e6);
  if (row.attn != "mha" && row.attn != "gqa" && row.attn != "mla") {
    csv_.fail(csv_.column("attn"), "mha, gqa or mla");
  }
  if (row.n_gpus / row.tp / row.cp / row.pp != row.dp || row.n_gpus % row.dp != 0) {
    csv_.fail(csv_.column("n_gpus"), "tp x cp x pp x dp devices");
  }
  return row;
}

Model model_of(const TrainingRow& row) {
  const RowFamily family = family_of(row);
  const bool drafts = !contains_ignoring_case(row.notes, "w/o MTP");
  return decoder_model({.name = row.model,
                        .layers = row.layers,
                        .hidden = row.hidden,
                        .heads = row.heads,
                        .kv_heads = row.kv_heads,
                        .head_dim = row.head_dim,
                        .ffn = row.ffn,
                        .vocabulary = row.vocab,
                        .positions = row.seq,
                        .gated = row.gated,
                        .experts = row.experts,
                        .top_k = row.topk,
                        .expert_ffn = row.moe_ffn,
                        .shared_ffn = row.shared_experts * row.moe_ffn,
                        .dense_layers = row.dense_layers,
                        .latent_attention = row.attn == "mla",
                        .window = family.window,
                        .learned_positions = family.learned_positions,
                        .tied_embeddings = row.tied.value_or(family.tied),
                        .biases = family.biases,
                        .layer_norm = family.layer_norm,
                        .qk_norm = family.qk_norm,
                        .sinks = family.sinks,
                        .draft_layers = drafts ? family.draft_layers : 0});
}

namespace {

// "rmsnorm+mla-up-proj": modules in the words of a source.
std::optional<LayerModules> modules_in(std::string_view text) {
  constexpr std::pair<std::string_view, LayerModule> words[] = {
      {"rmsnorm", LayerModule::layernorm},       {"layernorm", LayerModule::layernorm},
      {"mla-up-proj", LayerModule::mla_up_proj}, {"swiglu", LayerModule::moe_act},
      {"moe-act", LayerModule::moe_act},         {"core-attn", LayerModule::core_attn}};
  LayerModules modules;
  for (const auto& [word, module] : words) {
    if (contains_ignoring_case(text, word)) modules.add(module);
  }
  if (modules.empty()) return std::nullopt;
  return modules;
}

}  // namespace

bool says_recompute(const TrainingRow& row) {
  return recompute_from_name(row.recompute) || modules_in(row.recompute);
}

std::optional<double> measured_seconds(const TrainingRow& row, const Model& model) {
  if (row.iter_time_s) return row.iter_time_s;
  if (!row.tflops_per_gpu) return std::nullopt;
  // NeMo counts attention in full (nemo-24.07 does); its pages of long sequences leave that open.
  const bool nemo = row.source.starts_with("nemo") && row.tflops_def.starts_with("model-3x");
  const FlopConvention* convention = find_flop_convention(nemo ? "model-3x-full-attn" : row.tflops_def);
  if (convention == nullptr) return std::nullopt;
  const double flops = convention->per_token(token_flops(model, {.sequence_length = row.seq}));
  const double tokens = static_cast<double>(row.global_batch) * static_cast<double>(row.seq);
  return tokens * flops / (1e12 * *row.tflops_per_gpu * static_cast<double>(row.n_gpus));
}

TrainingPlan plan_of(const TrainingRow& row, const RowAssumptions& assumed) {
  TrainingPlan plan{.parallel = {.tensor = row.tp,
                                 .pipeline = row.pp,
                                 .data = row.dp,
                                 .expert = row.ep,
                                 .context = row.cp,
                                 .sequence = row.sp},
                    .micro_batch = row.micro_batch.value_or(assumed.micro_batch),
                    .global_batch = row.global_batch,
                    .virtual_stages = row.vpp.value_or(assumed.virtual_stages),
                    .sharding = static_cast<Sharding>(row.zero),
                    .shard_ranks = row.zero > 0 ? row.shard_ranks : 0,
                    .recompute = recompute_from_name(row.recompute).value_or(assumed.recompute)};
  if (const std::optional<LayerModules> modules = modules_in(row.recompute)) {
    plan.recompute = Recompute::selective;
    plan.recompute_modules = *modules;
  }
  if (plan.virtual_stages > 1) plan.schedule = "interleaved";
  if (contains_ignoring_case(row.notes, "DualPipe")) {
    plan.schedule = "dualpipe";
    plan.virtual_stages = 1;
  }
  // Layers that divide only together with the embedding and the loss were shared out with them.
  const int64_t chunks = plan.chunks();
  if (row.layers % chunks != 0 && (row.layers + 2) % chunks == 0) plan.embedding_in_split = plan.loss_in_split = true;
  return plan;
}

}  // namespace foretoken
