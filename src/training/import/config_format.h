// A framework's way to write a training configuration: which keys say what. One file in formats/, one line in
// formats/list.cpp.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "training/import/config_entries.h"
#include "training/import/said_settings.h"

namespace foretoken {

// The key of a tree or the name of a flag, and what it says.
struct KeyRule {
  std::string_view key;
  void (*read)(SaidSettings& said, const ConfigValue& value);
  bool takes_auto = false;  // `auto` is a value like others; elsewhere it says nothing
};

// A key that may change time or memory and is not modeled; a name with `*` is all that begins so.
struct UnmodeledKey {
  std::string_view key;
  bool changes_nothing_if_false = false;
};

enum class ConfigSyntax { tree, arguments };

struct ConfigFormat {
  std::string_view name, summary;
  ConfigSyntax syntax = ConfigSyntax::tree;
  std::span<const KeyRule> rules;
  // What the framework takes where the file says nothing, as its documentation has it, and what follows from several
  // keys together. Adds to `notes` what a reader should know.
  void (*complete)(SaidSettings& said, const ConfigEntries& entries, std::vector<std::string>& notes) = nullptr;
  // Keys that change neither time nor memory: data, learning rates, logs. `logging.*` is all that begins so.
  std::span<const std::string_view> harmless = {};
  std::span<const UnmodeledKey> not_modeled = {};
  bool leaves_recompute_open = false;  // where its file says nothing of it, the model's code decides
};

std::span<const ConfigFormat> config_formats();

// ---- what rules do ------------------------------------------------------------------------------------------------

template <std::optional<int64_t> SaidSettings::*Member>
void says_count(SaidSettings& said, const ConfigValue& value) {
  said.*Member = value.count();
}
// Of ranks, devices and sequences: products of a few of them must fit into 64 bits.
template <std::optional<int64_t> SaidSettings::*Member>
void says_small_count(SaidSettings& said, const ConfigValue& value) {
  said.*Member = value.count(1, 100'000);
}
template <std::optional<int64_t> SaidSettings::*Member>
void says_count_or_none(SaidSettings& said, const ConfigValue& value) {  // 0 and below: as if it were not there
  if (const int64_t count = value.count(-1, 1000); count > 0) said.*Member = count;
}
template <std::optional<bool> SaidSettings::*Member>
void says_flag(SaidSettings& said, const ConfigValue& value) {
  said.*Member = value.flag();
}
template <std::optional<bool> SaidSettings::*Member>
void says_opposite(SaidSettings& said, const ConfigValue& value) {
  said.*Member = !value.flag();
}

template <std::optional<bool> SaidSettings::*Member>
void says_rate(SaidSettings& said, const ConfigValue& value) {  // a share that is more than nothing
  said.*Member = value.rate() > 0;
}

template <std::optional<double> SaidSettings::*Member>
void says_share(SaidSettings& said, const ConfigValue& value) {
  said.*Member = value.rate();
}

template <std::optional<std::string> SaidSettings::*Member>
void says_text(SaidSettings& said, const ConfigValue& value) {
  said.*Member = value.text();
}

inline void says_nothing(SaidSettings&, const ConfigValue&) {}  // known, but read in `complete`

// Names that several frameworks share with Megatron-Core.
void says_recompute_granularity(SaidSettings& said, const ConfigValue& value);  // full, selective
void says_recompute_modules(SaidSettings& said, const ConfigValue& value);      // core_attn, moe_act, ...
void says_tokenizer(SaidSettings& said, const ConfigValue& value);              // its vocabulary, where it is one only
void says_normalization(SaidSettings& said, const ConfigValue& value);          // LayerNorm, layernorm1p, RMSNorm
void says_positions(SaidSettings& said, const ConfigValue& value);              // rope, learned_absolute, none
void says_context_exchange(SaidSettings& said, const ConfigValue& value);       // p2p, all_gather, a2a
void says_token_dispatcher(SaidSettings& said, const ConfigValue& value);       // alltoall, flex, allgather
void says_flex_dispatcher(SaidSettings& said, const ConfigValue& value);        // deepep, hybridep
void says_deepep(SaidSettings& said, const ConfigValue& value);                 // true
void says_fp8_recipe(SaidSettings& said, const ConfigValue& value);             // delayed, tensorwise, blockwise, mxfp8
void says_optimizer_sharding(SaidSettings& said, const ConfigValue& value);     // true: ZeRO-1, unless more is said
void says_full_sharding(SaidSettings& said, const ConfigValue& value);          // true: FSDP, unless less is said
void says_sharding_strategy(SaidSettings& said, const ConfigValue& value);      // optim, optim_grads, ...

// Names of --cp-comm-type, and of --data-parallel-sharding-strategy in the order of Sharding.
std::vector<std::string_view> megatron_exchange_names();
std::optional<ContextExchange> exchange_from_megatron_name(std::string_view name);
std::span<const std::string_view> sharding_strategy_names();

// The number of layers is that of recomputed ones with the method `block`; with `uniform` it is the size of pieces, all
// of which are recomputed (Megatron-Core).
void keep_recompute_layers_of_blocks(SaidSettings& said, const ConfigEntry* method);

// Megatron-LM, NeMo and Megatron-Core drop 10% of activations and of attention where nothing is said of it.
void take_usual_dropout(SaidSettings& said, std::string_view framework, std::vector<std::string>& notes);

// Megatron-Core cuts experts over expert x expert-tensor ranks; of the latter there are as many as tensor ranks unless
// they are given (megatron/core/model_parallel_config.py). Plans here have tensor / expert ranks of them: for others,
// the expert ranks that hold as much, and a note.
void take_expert_tensor_ranks(SaidSettings& said, std::vector<std::string>& notes);

// Names of DeepSpeed.
void says_zero_stage(SaidSettings& said, const ConfigValue& value);  // 0 to 3
bool is_offloaded(const ConfigValue& value);                         // none, cpu, nvme
template <std::optional<bool> SaidSettings::*Member>
void says_offload_device(SaidSettings& said, const ConfigValue& value) {
  said.*Member = is_offloaded(value);
}

// Names that tools around Hugging Face's Trainer share.
void says_bf16(SaidSettings& said, const ConfigValue& value);                    // true, auto
void says_fp16(SaidSettings& said, const ConfigValue& value);                    // true
void says_gradient_checkpointing(SaidSettings& said, const ConfigValue& value);  // true, unsloth, offload
void says_fused_loss(SaidSettings& said, const ConfigValue& value);              // true: no logits in memory
void says_four_bits(SaidSettings& said, const ConfigValue& value);               // true: NF4
void says_eight_bits(SaidSettings& said, const ConfigValue& value);              // true: int8
// SGD with a momentum above 0 in the value of one of these keys has a moment ("0.9", "momentum=0.9").
void takes_momentum(SaidSettings& said, const ConfigEntries& entries, std::span<const std::string_view> keys);
void says_clipping(SaidSettings& said, const ConfigValue& value);  // 1.0; none or 0: not clipped
// Weights in bf16 are changed themselves, unless the software has a copy of them.
void keeps_weights_in_16_bits(SaidSettings& said);
void runs_on_deepspeed(SaidSettings& said);
void says_optimizer(SaidSettings& said, const ConfigValue& value);       // adamw_torch, paged_adamw_8bit, ...
void says_lora_targets(SaidSettings& said, const ConfigValue& value);    // [q_proj, up_proj], all
void says_deepspeed_file(SaidSettings& said, const ConfigValue& value);  // zero3_bf16_cpuoffload.json
void says_fsdp_words(SaidSettings& said, const ConfigValue& value);      // [full_shard, auto_wrap]
void says_fsdp_strategy(SaidSettings& said, const ConfigValue& value);   // FULL_SHARD, HYBRID_SHARD, ... or 1 to 5
// FSDP2: true keeps shards between the passes (ZeRO-3), false gathers once (ZeRO-2). FSDP1 names a strategy here.
void says_fsdp_reshard(SaidSettings& said, const ConfigValue& value);
// allgather, or alltoall for a ring: the setting of PyTorch's context parallelism.
void says_rotate_method(SaidSettings& said, const ConfigValue& value);
// A note where the file has a key and nothing came of it.
void note_unknown_optimizer(const SaidSettings& said, const ConfigEntries& entries, std::string_view key,
                            std::vector<std::string>& notes);

// A note where a file trains with pairs of answers, or with rewards: all is then that of supervised training.
void note_other_objective(std::string_view key, std::string_view objective, std::vector<std::string>& notes);

// One of the words, by its place in the list.
size_t one_of(const ConfigValue& value, std::span<const std::string_view> words);

}  // namespace foretoken
