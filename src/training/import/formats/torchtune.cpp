// YAML of torchtune's recipes (recipes/configs).
#include <array>

#include "base/text.h"
#include "training/import/formats/list.h"
#include "training/import/framework_models.h"

namespace foretoken {
namespace {

using S = SaidSettings;

// torchtune.models.llama3_1.qlora_llama3_1_8b: the function that builds the model.
void component(S& said, const ConfigValue& value) {
  std::string_view name = value.text();
  name.remove_prefix(name.rfind('.') + 1);
  if (name.starts_with("qlora_")) {
    said.base_weights = "nf4";
    name.remove_prefix(6);
    if (!said.lora_rank) said.lora_rank = 8;
  } else if (name.starts_with("lora_")) {
    name.remove_prefix(5);
    if (!said.lora_rank) said.lora_rank = 8;
  }
  said.model_name = model_of_tune(name).value_or(std::string(name));
}

void lora_attention(S& said, const ConfigValue&) {
  said.lora_on_attention = true;
  if (!said.lora_on_mlp) said.lora_on_mlp = false;
}

void dtype(S& said, const ConfigValue& value) {
  static constexpr std::string_view words[] = {"bf16", "fp16", "fp32"};
  const size_t word = one_of(value, words);
  if (word == 2) value.fail("bf16 or fp16: fp32 training is not supported");
  said.precision = words[word];
}

void cpu_offloads(S& said, const ConfigValue& value) {
  said.offloads_parameters = said.offloads_optimizer = value.flag();
}

void checkpoints(S& said, const ConfigValue& value) {
  said.recompute = value.flag() ? Recompute::full : Recompute::none;
}

void tune_float8(S& said, const ConfigValue& value) {
  if (value.flag()) said.precision = "fp8-current";
}

void loss(S& said, const ConfigValue& value) {
  const bool chunked =
      contains_ignoring_case(value.text(), "chunked") || contains_ignoring_case(value.text(), "LinearCrossEntropy");
  if (chunked) said.logit_bytes = tune_chunked_logit_bytes;
}

// The distributed recipes shard by FSDP2; with one device there is nothing to shard.
void complete_torchtune(S& said, const ConfigEntries& entries, std::vector<std::string>& notes) {
  const bool compiled = said.compiled.value_or(false);
  said.stack = compiled ? "torchtitan" : "torchtitan-eager";
  // Compiled losses make fp32 copies of no chunk: logits are those of the stack, in chunks or not.
  if (compiled) said.logit_bytes.reset();
  if (!said.sharding) said.sharding = Sharding::parameters;
  if (!said.accumulation) said.accumulation = 1;
  if (!said.context_exchange) said.context_exchange = ContextExchange::all_gather;
  if (said.sharded_copies == 1) said.sharded_copies.reset();
  if (!said.recompute) said.recompute = Recompute::none;
  if (!said.clips_gradients) said.clips_gradients = false;
  if (said.tensor.value_or(1) > 1) said.sequence_parallel = true;  // as its plans for training say
  note_unknown_optimizer(said, entries, "optimizer._component_", notes);
  takes_momentum(said, entries, std::array<std::string_view, 1>{"optimizer.momentum"});
  keeps_weights_in_16_bits(said);
  const ConfigEntry* const loss = entries.find("loss._component_");  // torchtune.rlhf.loss.DPOLoss, PPOLoss, GRPOLoss
  if (loss != nullptr && contains_ignoring_case(loss->value, ".rlhf.")) {
    note_other_objective("loss", loss->value, notes);
  }
}

constexpr KeyRule torchtune_rules[] = {
    {"model._component_", component},
    {"model.lora_rank", says_count<&S::lora_rank>},
    {"model.lora_attn_modules", lora_attention},
    {"model.quantize_base", says_four_bits},
    {"model.apply_lora_to_mlp", says_flag<&S::lora_on_mlp>},
    {"tokenizer.max_seq_len", says_count<&S::sequence_length>},
    {"dataset.packed", says_flag<&S::packed>},
    {"batch_size", says_small_count<&S::micro_batch>},
    {"gradient_accumulation_steps", says_small_count<&S::accumulation>},
    {"optimizer._component_", says_optimizer},
    {"clip_grad_norm", says_clipping},
    {"enable_activation_checkpointing", checkpoints},
    {"enable_activation_offloading", says_flag<&S::offloads_activations>},
    {"fsdp_cpu_offload", cpu_offloads},
    {"compile", says_flag<&S::compiled>},
    {"loss._component_", loss},
    {"dtype", dtype},
    {"enable_fp8_training", tune_float8},
    {"tensor_parallel_dim", says_small_count<&S::tensor>},
    {"context_parallel_dim", says_small_count<&S::context>},
    {"context_parallel_rotate_method", says_rotate_method},
    {"expert_parallel_degree", says_small_count<&S::expert>},
    {"data_parallel_replicate_dim", says_count_or_none<&S::sharded_copies>},
};

constexpr std::string_view torchtune_harmless[] = {"output_dir",
                                                   "model.lora_alpha",
                                                   "model.lora_dropout",
                                                   "tokenizer.*",
                                                   "checkpointer.*",
                                                   "resume_from_checkpoint",
                                                   "save_*",
                                                   "dataset*",
                                                   "seed",
                                                   "shuffle",
                                                   "epochs",
                                                   "max_steps_per_epoch",
                                                   "optimizer.*",
                                                   "lr_scheduler.*",
                                                   "loss.*",
                                                   "device",
                                                   "metric_logger.*",
                                                   "log_*",
                                                   "profiler.*",
                                                   "data_parallel_shard_dim",
                                                   "tensor_parallel_plan.*",
                                                   "batch_size_val",
                                                   "run_val_every_n_steps"};

constexpr UnmodeledKey torchtune_not_modeled[] = {{"model.apply_lora_to_output", true},
                                                  {"model.use_dora", true},
                                                  {"optimizer_in_bwd", true},
                                                  {"custom_sharded_layers"},
                                                  {"fsdp_reshard_after_forward"}};

}  // namespace

ConfigFormat torchtune_format() {
  return {.name = "torchtune",
          .summary = "YAML of torchtune's recipes",
          .rules = torchtune_rules,
          .complete = complete_torchtune,
          .harmless = torchtune_harmless,
          .not_modeled = torchtune_not_modeled};
}

}  // namespace foretoken
