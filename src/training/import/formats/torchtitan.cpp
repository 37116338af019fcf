// torchtitan's TOML (torchtitan/config/job_config.py), with the names of earlier releases.
#include "base/text.h"
#include "training/import/formats/list.h"
#include "training/import/framework_models.h"

namespace foretoken {
namespace {

using S = SaidSettings;

// -1 = what the other degrees leave.
template <std::optional<int64_t> SaidSettings::*Member>
void degree(S& said, const ConfigValue& value) {
  if (const int64_t count = value.count(-1, 100'000); count > 0) said.*Member = count;
}

void checkpoint_mode(S& said, const ConfigValue& value) {
  static constexpr std::string_view words[] = {"none", "full", "selective", "memory_budget"};
  constexpr Recompute modes[] = {Recompute::none, Recompute::full, Recompute::op, Recompute::op};
  said.recompute = modes[one_of(value, words)];
}

// "op", or a number: every so many layers as a whole.
void selective_option(S& said, const ConfigValue& value) {
  if (value.text() != "op") said.recompute_every = value.count(1, 1000);
}

// A loss that is not compiled holds what PyTorch's own does.
void compiled_components(S& said, const ConfigValue& value) {
  if (!contains_ignoring_case(value.text(), "loss")) said.logit_bytes = 10;
}

void fp8_gathers(S& said, const ConfigValue& value) {
  said.fp8_gathers = value.flag();
}

void pipeline_schedule(S& said, const ConfigValue& value) {
  static constexpr std::string_view words[] = {"1F1B",          "GPipe",     "Interleaved1F1B", "InterleavedZeroBubble",
                                               "ZBVZeroBubble", "DualPipeV", "LoopedBFS"};
  constexpr std::string_view names[] = {"1f1b", "gpipe", "interleaved", "interleaved", "zb-v", "dualpipe", "gpipe"};
  const size_t word = one_of(value, words);
  said.schedule = names[word];
  const bool has_two_chunks = names[word] == "interleaved" || names[word] == "zb-v";
  if (has_two_chunks && !said.virtual_stages) said.virtual_stages = 2;
}

void converters(S& said, const ConfigValue& value) {
  if (contains_ignoring_case(value.text(), "float8")) said.precision = "fp8-current";
  if (contains_ignoring_case(value.text(), "mx")) said.precision = "mxfp8";
}
void float8_enabled(S& said, const ConfigValue& value) {
  if (value.flag()) said.precision = "fp8-current";
}

void cpu_offload(S& said, const ConfigValue& value) {
  said.offloads_parameters = said.offloads_optimizer = value.flag();
}

void compiles(S& said, const ConfigValue& value) {
  if (value.flag()) said.compiled = true;  // by either of its two keys
}

std::string text_at(const ConfigEntries& entries, std::string_view key) {
  const ConfigEntry* entry = entries.find(key);
  return entry == nullptr ? std::string() : entry->value;
}

// The last part of a path of downloaded files: ./assets/hf/Llama-3.1-8B.
std::string last_part(const std::string& path) {
  std::string_view rest = path;
  while (rest.ends_with('/')) rest.remove_suffix(1);
  return std::string(rest.substr(rest.rfind('/') + 1));
}

void name_model(S& said, const ConfigEntries& entries) {
  const std::string name = text_at(entries, "model.name"), flavor = text_at(entries, "model.flavor");
  said.model_name = model_of_titan({.name = name, .flavor = flavor});
  if (said.model_name) return;
  if (const std::string assets = text_at(entries, "model.hf_assets_path"); !assets.empty()) {
    said.model_name = last_part(assets);
  } else if (!name.empty()) {
    said.model_name = flavor.empty() ? name : name + "-" + flavor;
  }
}

// A replica's batch passes through a pipeline in pieces of pipeline_parallel_microbatch_size.
void cut_batch(S& said, const ConfigEntries& entries) {
  if (!said.micro_batch || said.pipeline.value_or(1) == 1) return;
  const ConfigEntry* entry = entries.find("parallelism.pipeline_parallel_microbatch_size");
  const int64_t piece = entry == nullptr ? 1 : ConfigValue(entries.source, *entry).count(1, 100'000);
  if (*said.micro_batch % piece != 0) return;
  // A global batch counts further accumulation in.
  if (!said.global_batch) said.accumulation = *said.micro_batch / piece;
  said.micro_batch = piece;
}

// The usual mode is the selective one, and its usual option every second layer as a whole. Other modes have none.
void complete_recompute_option(S& said, const ConfigEntries& entries) {
  const std::string mode = text_at(entries, "activation_checkpoint.mode");
  const bool selective = mode.empty() || equal_ignoring_case(mode, "selective");
  if (!said.recompute) said.recompute = Recompute::op;
  if (!selective) said.recompute_every.reset();
  if (selective && text_at(entries, "activation_checkpoint.selective_ac_option").empty()) said.recompute_every = 2;
  if (said.recompute_every) said.recompute = Recompute::full;
}

void complete_torchtitan(S& said, const ConfigEntries& entries, std::vector<std::string>& notes) {
  name_model(said, entries);
  cut_batch(said, entries);
  if (!said.sequence_length) said.sequence_length = 2048;
  const bool compiled = said.compiled.value_or(false);
  said.stack = compiled ? "torchtitan" : "torchtitan-eager";
  if (!compiled) said.logit_bytes.reset();
  complete_recompute_option(said, entries);
  if (!said.context_exchange) said.context_exchange = ContextExchange::all_gather;
  if (said.fp8_gathers && said.precision.value_or("bf16") == "bf16") said.fp8_gathers.reset();
  if (said.tensor.value_or(1) > 1) said.sequence_parallel = true;
  // FSDP over all replicas unless a degree of 1 says that each holds a copy.
  const bool one_shard = said.shard_ranks == 1;
  said.sharding = one_shard ? Sharding::none : Sharding::parameters;
  if (one_shard) {
    said.sharded_copies.reset();
    said.shard_ranks.reset();
  } else if (said.shard_ranks && !said.sharded_copies) {
    said.sharded_copies = 1;
  }
  said.clips_gradients = true;  // to whatever norm (torchtitan/train.py)
  note_unknown_optimizer(said, entries, "optimizer.name", notes);
}

constexpr KeyRule torchtitan_rules[] = {
    {"model.name", says_nothing},
    {"model.flavor", says_nothing},
    {"model.hf_assets_path", says_nothing},
    {"model.converters", converters},
    {"optimizer.name", says_optimizer},
    {"training.local_batch_size", says_small_count<&S::micro_batch>},
    {"training.batch_size", says_small_count<&S::micro_batch>},
    {"training.global_batch_size", degree<&S::global_batch>},
    {"training.seq_len", says_count<&S::sequence_length>},
    {"training.max_norm", says_nothing},  // gradients are always clipped: complete_torchtitan
    {"training.enable_cpu_offload", cpu_offload},
    {"training.compile", compiles},
    {"training.tensor_parallel_degree", degree<&S::tensor>},
    {"training.data_parallel_replicate_degree", degree<&S::sharded_copies>},
    {"training.data_parallel_shard_degree", degree<&S::shard_ranks>},
    {"parallelism.tensor_parallel_degree", degree<&S::tensor>},
    {"parallelism.pipeline_parallel_degree", degree<&S::pipeline>},
    {"parallelism.pipeline_parallel_microbatch_size", says_nothing},
    {"parallelism.pipeline_parallel_schedule", pipeline_schedule},
    {"parallelism.pipeline_parallel_layers_per_stage", says_count<&S::layers_per_virtual_stage>},
    {"parallelism.context_parallel_degree", degree<&S::context>},
    {"parallelism.context_parallel_rotate_method", says_rotate_method},
    {"experimental.context_parallel_rotate_method", says_rotate_method},
    {"parallelism.expert_parallel_degree", degree<&S::expert>},
    {"parallelism.data_parallel_replicate_degree", degree<&S::sharded_copies>},
    {"parallelism.data_parallel_shard_degree", degree<&S::shard_ranks>},
    {"experimental.pipeline_parallel_degree", degree<&S::pipeline>},
    {"experimental.pipeline_parallel_schedule", pipeline_schedule},
    {"experimental.context_parallel_degree", degree<&S::context>},
    {"activation_checkpoint.mode", checkpoint_mode},
    {"activation_checkpoint.selective_ac_option", selective_option},
    {"compile.enable", compiles},
    {"compile.components", compiled_components},
    {"float8.enable_float8_linear", float8_enabled},
    {"float8.enable_fsdp_float8_all_gather", fp8_gathers},
    {"quantize.linear.float8.enable_fsdp_float8_all_gather", fp8_gathers},
};

constexpr std::string_view torchtitan_harmless[] = {"job.*",
                                                    "profiling.*",
                                                    "metrics.*",
                                                    "checkpoint.*",
                                                    "comm.*",
                                                    "lr_scheduler.*",
                                                    "validation.*",
                                                    "experimental.custom*",
                                                    "fault_tolerance.*",
                                                    "memory_estimation.*",
                                                    "optimizer.lr",
                                                    "optimizer.eps",
                                                    "optimizer.beta*",
                                                    "optimizer.weight_decay",
                                                    "model.tokenizer_path",
                                                    "model.print_after_conversion",
                                                    "model.norm_type",
                                                    "training.dataset*",
                                                    "training.steps",
                                                    "training.warmup_steps",
                                                    "training.seed",
                                                    "training.deterministic",
                                                    "training.gc_freq",
                                                    "debug.*"};

constexpr UnmodeledKey torchtitan_not_modeled[] = {{"optimizer.fused"},
                                                   {"optimizer.implementation"},
                                                   {"optimizer.early_step_in_backward"},
                                                   {"training.mixed_precision_param"},
                                                   {"training.mixed_precision_reduce"},
                                                   {"activation_checkpoint.per_op_sac*"},
                                                   {"activation_checkpoint.memory_budget"},
                                                   {"activation_checkpoint.early_stop"},
                                                   {"parallelism.pipeline_parallel_split_points"},
                                                   {"parallelism.pipeline_parallel_first_stage_less_layers"},
                                                   {"parallelism.pipeline_parallel_last_stage_less_layers"},
                                                   {"parallelism.module_fqns_per_model_part"},
                                                   {"parallelism.fsdp_reshard_after_forward"},
                                                   {"parallelism.enable_async_tensor_parallel"},
                                                   {"parallelism.disable_loss_parallel"},
                                                   {"parallelism.enable_compiled_autograd"},
                                                   {"compile.backend"},
                                                   {"float8.*"},
                                                   {"quantize.*"}};

}  // namespace

ConfigFormat torchtitan_format() {
  return {.name = "torchtitan",
          .summary = "TOML of torchtitan",
          .rules = torchtitan_rules,
          .complete = complete_torchtitan,
          .harmless = torchtitan_harmless,
          .not_modeled = torchtitan_not_modeled};
}

}  // namespace foretoken
