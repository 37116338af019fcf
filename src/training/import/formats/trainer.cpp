// YAML with the arguments of Hugging Face's Trainer, as TRL, the alignment handbook and LLaMA-Factory write them.
#include <array>

#include "base/text.h"
#include "training/import/formats/list.h"

namespace foretoken {
namespace {

using S = SaidSettings;

void finetuning(S& said, const ConfigValue& value) {
  static constexpr std::string_view words[] = {"full", "freeze", "lora"};
  if (one_of(value, words) == 2 && !said.lora_rank) said.lora_rank = 8;
}

void uses_adapter(S& said, const ConfigValue& value) {
  if (value.flag() && !said.lora_rank) said.lora_rank = 16;
}

void quantized(S& said, const ConfigValue& value) {
  said.base_weights = value.count(4, 8) == 4 ? "nf4" : "int8";
}

// `auto` and what is worked out later are not.
bool is_switched_on(const ConfigEntries& entries, std::string_view key) {
  const ConfigEntry* entry = entries.find(key);
  return entry != nullptr && flag_from_text(entry->value).value_or(false);
}

bool asks_for_adapters(const ConfigEntries& entries) {
  const ConfigEntry* kind = entries.find("finetuning_type");
  return is_switched_on(entries, "use_peft") || (kind != nullptr && equal_ignoring_case(kind->value, "lora"));
}

void checks_switch(S&, const ConfigValue& value) {
  value.flag();
}

bool is_of_llama_factory(const ConfigEntries& entries) {
  for (const char* key : {"finetuning_type", "stage", "template", "cutoff_len", "disable_gradient_checkpointing"}) {
    if (entries.find(key) != nullptr) return true;
  }
  return false;
}

// LLaMA-Factory raises what it trains to fp32 unless pure_bf16 is set (src/llamafactory/model/adapter.py), and so do
// Accelerate's FSDP and PEFT; else weights are trained as they are loaded.
bool trains_16_bits(const S& said, const ConfigEntries& entries) {
  if (is_of_llama_factory(entries)) return is_switched_on(entries, "pure_bf16");
  if (said.lora_rank || said.sharding.value_or(Sharding::none) != Sharding::none) return false;
  for (const char* key : {"torch_dtype", "dtype"}) {
    const ConfigEntry* const entry = entries.find(key);
    if (entry != nullptr && equal_ignoring_case(entry->value, "bfloat16")) return true;
  }
  return false;
}

// LLaMA-Factory turns recomputation on unless its own key says no, before the Trainer looks at gradient_checkpointing
// (src/llamafactory/model/model_utils/checkpointing.py).
void complete_recompute(S& said, const ConfigEntries& entries, std::vector<std::string>& notes) {
  const bool by_default = is_of_llama_factory(entries) && !is_switched_on(entries, "disable_gradient_checkpointing");
  if (by_default && said.recompute == Recompute::none && entries.find("gradient_checkpointing") != nullptr) {
    notes.emplace_back(
        "gradient_checkpointing: false leaves LLaMA-Factory's own recomputation on, which "
        "disable_gradient_checkpointing: true turns off");
  }
  if (by_default) said.recompute = Recompute::full;
  if (!said.recompute) said.recompute = Recompute::none;
}

void complete_trainer(S& said, const ConfigEntries& entries, std::vector<std::string>& notes) {
  if (!said.stack) said.stack = "transformers";
  if (!asks_for_adapters(entries)) {
    said.lora_rank.reset();
    said.base_weights.reset();
  }
  if (!said.accumulation) said.accumulation = 1;
  complete_recompute(said, entries, notes);
  if (!said.sharding) said.sharding = Sharding::none;
  note_unknown_optimizer(said, entries, "optim", notes);
  takes_momentum(said, entries, std::array<std::string_view, 2>{"optim_args", "optim_args.momentum"});
  if (trains_16_bits(said, entries)) keeps_weights_in_16_bits(said);
  const ConfigEntry* const stage = entries.find("stage");  // of LLaMA-Factory: pt, sft, rm, ppo, dpo, kto
  const bool supervised =
      stage == nullptr || equal_ignoring_case(stage->value, "sft") || equal_ignoring_case(stage->value, "pt");
  if (!supervised) note_other_objective("stage", stage->value, notes);
}

constexpr KeyRule trainer_rules[] = {
    {"use_liger_kernel", says_fused_loss},
    {"model_name_or_path", says_text<&S::model_name>},
    {"max_seq_length", says_count<&S::sequence_length>},
    {"max_length", says_count<&S::sequence_length>},
    {"cutoff_len", says_count<&S::sequence_length>},
    {"block_size", says_count<&S::sequence_length>},
    {"per_device_train_batch_size", says_small_count<&S::micro_batch>},
    {"gradient_accumulation_steps", says_small_count<&S::accumulation>},
    {"gradient_checkpointing", says_gradient_checkpointing},
    {"disable_gradient_checkpointing", checks_switch},
    {"pure_bf16", checks_switch},
    {"torch_dtype", says_nothing, true},
    {"dtype", says_nothing, true},
    {"fsdp_config.activation_checkpointing", says_gradient_checkpointing},
    {"fsdp_config.fsdp_activation_checkpointing", says_gradient_checkpointing},
    {"packing", says_flag<&S::packed>},
    {"use_peft", uses_adapter},
    {"finetuning_type", finetuning},
    {"lora_r", says_count<&S::lora_rank>},
    {"lora_rank", says_count<&S::lora_rank>},
    {"lora_target_modules", says_lora_targets},
    {"lora_target", says_lora_targets},
    {"load_in_4bit", says_four_bits},
    {"load_in_8bit", says_eight_bits},
    {"quantization_bit", quantized},
    {"optim", says_optimizer},
    {"max_grad_norm", says_clipping},
    {"bf16", says_bf16, true},
    {"fp16", says_fp16, true},
    {"deepspeed", says_deepspeed_file},
    {"fsdp", says_fsdp_words},
    {"stage", says_nothing},
};

constexpr std::string_view trainer_harmless[] = {"adam_*",
                                                 "attn_implementation",
                                                 "chat_template",
                                                 "dataloader_*",
                                                 "dataset*",
                                                 "ddp_*",
                                                 "do_*",
                                                 "eval*",
                                                 "flash_attn",
                                                 "fsdp_config.*",
                                                 "gradient_checkpointing_kwargs.*",
                                                 "hub_*",
                                                 "learning_rate",
                                                 "log*",
                                                 "lora_alpha",
                                                 "lora_dropout",
                                                 "lr_scheduler*",
                                                 "max_samples",
                                                 "max_steps",
                                                 "model_revision",
                                                 "num_train_epochs",
                                                 "output_dir",
                                                 "overwrite_*",
                                                 "per_device_eval_batch_size",
                                                 "plot_loss",
                                                 "preprocessing_num_workers",
                                                 "push_to_hub",
                                                 "report_to",
                                                 "resume_from_checkpoint",
                                                 "run_name",
                                                 "save*",
                                                 "seed",
                                                 "template",
                                                 "tf32",
                                                 "trust_remote_code",
                                                 "val_size",
                                                 "warmup_*",
                                                 "weight_decay"};

// Of LLaMA-Factory's preference training.
constexpr UnmodeledKey trainer_not_modeled[] = {{"pref_*"}, {"ref_model*"}, {"reward_model*"}, {"rpo_alpha"}};

}  // namespace

ConfigFormat trainer_format() {
  return {.name = "hf-trainer",
          .summary = "YAML of Hugging Face's Trainer (TRL, LLaMA-Factory)",
          .rules = trainer_rules,
          .complete = complete_trainer,
          .harmless = trainer_harmless,
          .not_modeled = trainer_not_modeled};
}

}  // namespace foretoken
