// Axolotl's YAML (docs.axolotl.ai, configuration reference).
#include <algorithm>
#include <array>

#include "base/text.h"
#include "training/import/formats/list.h"

namespace foretoken {
namespace {

using S = SaidSettings;

void adapter(S& said, const ConfigValue& value) {
  static constexpr std::string_view words[] = {"lora", "qlora"};
  if (one_of(value, words) == 1) said.base_weights = "nf4";
  if (!said.lora_rank) said.lora_rank = 8;
}

void every_linear(S& said, const ConfigValue& value) {
  if (value.flag()) said.lora_on_attention = said.lora_on_mlp = true;
}

void complete_axolotl(S& said, const ConfigEntries& entries, std::vector<std::string>& notes) {
  if (!said.stack) said.stack = "transformers";
  if (entries.find("adapter") == nullptr) {
    said.lora_rank.reset();
    said.base_weights.reset();
  }
  if (!said.accumulation) said.accumulation = 1;
  if (!said.recompute) said.recompute = Recompute::none;
  // FSDP2 has no word for a strategy: its settings alone switch it on.
  const bool has_fsdp = std::any_of(entries.entries.begin(), entries.entries.end(), [](const ConfigEntry& entry) {
    return entry.key.starts_with("fsdp_version") || entry.key.starts_with("fsdp_config.");
  });
  if (!said.sharding) said.sharding = has_fsdp ? Sharding::parameters : Sharding::none;
  if (said.sharded_copies == 1) said.sharded_copies.reset();
  note_unknown_optimizer(said, entries, "optimizer", notes);
  // As the model is loaded; PEFT keeps adapters in fp32, and DeepSpeed a copy of the weights.
  takes_momentum(said, entries, std::array<std::string_view, 2>{"optim_args", "optim_args.momentum"});
  if (!said.lora_rank) keeps_weights_in_16_bits(said);
}

void shard_size(S& said, const ConfigValue& value) {
  if (value.count(1, 100'000) > 1) said.sharding = Sharding::parameters;
}

// FSDP keeps the optimizer where the parameters are.
void offloads_params(S& said, const ConfigValue& value) {
  said.offloads_parameters = said.offloads_optimizer = value.flag();
}

constexpr KeyRule axolotl_rules[] = {
    {"base_model", says_text<&S::model_name>},
    {"sequence_len", says_count<&S::sequence_length>},
    {"micro_batch_size", says_small_count<&S::micro_batch>},
    {"gradient_accumulation_steps", says_small_count<&S::accumulation>},
    {"adapter", adapter},
    {"lora_r", says_count<&S::lora_rank>},
    {"lora_target_modules", says_lora_targets},
    {"lora_target_linear", every_linear},
    {"load_in_4bit", says_four_bits},
    {"load_in_8bit", says_eight_bits},
    {"sample_packing", says_flag<&S::packed>},
    {"gradient_checkpointing", says_gradient_checkpointing},
    {"optimizer", says_optimizer},
    {"max_grad_norm", says_clipping},
    {"bf16", says_bf16, true},
    {"fp16", says_fp16, true},
    {"deepspeed", says_deepspeed_file},
    {"fsdp", says_fsdp_words},
    {"fsdp_config.fsdp_sharding_strategy", says_fsdp_strategy},
    {"fsdp_config.reshard_after_forward", says_fsdp_reshard},
    {"fsdp_config.fsdp_reshard_after_forward", says_fsdp_reshard},  // Axolotl drops the prefix
    {"fsdp_config.fsdp_offload_params", offloads_params},
    {"fsdp_config.offload_params", offloads_params},
    {"fsdp_config.activation_checkpointing", says_gradient_checkpointing},
    {"fsdp_config.fsdp_activation_checkpointing", says_gradient_checkpointing},
    {"tensor_parallel_size", says_small_count<&S::tensor>},
    {"context_parallel_size", says_small_count<&S::context>},
    {"sequence_parallel_degree", says_small_count<&S::context>},
    {"dp_shard_size", shard_size},
    {"cut_cross_entropy", says_fused_loss},
    {"liger_fused_linear_cross_entropy", says_fused_loss},
    {"dp_replicate_size", says_small_count<&S::sharded_copies>},
};

constexpr std::string_view axolotl_harmless[] = {"base_model_config",
                                                 "model_type",
                                                 "tokenizer*",
                                                 "datasets*",
                                                 "test_datasets*",
                                                 "dataset_*",
                                                 "val_set_size",
                                                 "output_dir",
                                                 "chat_template*",
                                                 "special_tokens.*",
                                                 "wandb_*",
                                                 "mlflow_*",
                                                 "use_wandb",
                                                 "learning_rate",
                                                 "lr_scheduler*",
                                                 "cosine_*",
                                                 "warmup_*",
                                                 "weight_decay",
                                                 "adam_*",
                                                 "optim_args*",
                                                 "num_epochs",
                                                 "max_steps",
                                                 "logging_steps",
                                                 "eval*",
                                                 "save*",
                                                 "saves_per_epoch",
                                                 "early_stopping_patience",
                                                 "resume_from_checkpoint",
                                                 "hub_*",
                                                 "hf_use_auth_token",
                                                 "trust_remote_code",
                                                 "strict",
                                                 "seed",
                                                 "train_on_inputs",
                                                 "pad_to_sequence_len",
                                                 "flash_attention",
                                                 "lora_alpha",
                                                 "lora_dropout",
                                                 "lora_fan_in_fan_out",
                                                 "lora_model_dir",
                                                 "peft_use_*",
                                                 "gradient_checkpointing_kwargs.*",
                                                 "tf32",
                                                 "fsdp_version",
                                                 "fsdp_config.fsdp_*",
                                                 "fsdp_config.state_dict_type",
                                                 "fsdp_config.auto_wrap_policy",
                                                 "fsdp_config.transformer_layer_cls_to_wrap",
                                                 "debug",
                                                 "local_rank",
                                                 "is_llama_derived_model",
                                                 "is_mistral_derived_model",
                                                 "is_qwen_derived_model",
                                                 "is_falcon_derived_model",
                                                 "shuffle_merged_datasets",
                                                 "remove_unused_columns"};

constexpr UnmodeledKey axolotl_not_modeled[] = {{"unfrozen_parameters"},
                                                {"liger_*", true},
                                                {"sdp_attention", true},
                                                {"attn_implementation"},
                                                {"group_by_length", true},
                                                {"lora_modules_to_save"},
                                                {"ddp_*"},
                                                {"lora_mlp_kernel", true},
                                                {"lora_qkv_kernel", true},
                                                {"lora_o_kernel", true},
                                                {"plugins"},
                                                {"torch_compile*", true},
                                                {"rl"}};

}  // namespace

ConfigFormat axolotl_format() {
  return {.name = "axolotl",
          .summary = "YAML of Axolotl",
          .rules = axolotl_rules,
          .complete = complete_axolotl,
          .harmless = axolotl_harmless,
          .not_modeled = axolotl_not_modeled};
}

}  // namespace foretoken
