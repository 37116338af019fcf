// YAML of llm-foundry (scripts/train/yamls): MPT models under FSDP.
#include "base/text.h"
#include "training/import/formats/list.h"

namespace foretoken {
namespace {

using S = SaidSettings;

void attention_type(S& said, const ConfigValue& value) {
  if (value.text() == "multiquery_attention") said.kv_heads = 1;
}
void ffn_type(S& said, const ConfigValue& value) {
  said.gated = contains_ignoring_case(value.text(), "glu") || value.text() == "mb_dmoe";
}
void precision(S& said, const ConfigValue& value) {
  static constexpr std::string_view words[] = {"amp_bf16", "bf16", "amp_fp16", "fp16", "amp_fp8"};
  static constexpr std::string_view recipes[] = {"bf16", "bf16", "fp16", "fp16", "fp8-delayed"};
  said.precision = recipes[one_of(value, words)];
}

void sharding_strategy(S& said, const ConfigValue& value) {
  static constexpr std::string_view words[] = {"NO_SHARD", "SHARD_GRAD_OP", "FULL_SHARD", "HYBRID_SHARD",
                                               "_HYBRID_SHARD_ZERO2"};
  static constexpr Sharding shardings[] = {Sharding::none, Sharding::gradients, Sharding::parameters,
                                           Sharding::parameters, Sharding::gradients};
  said.sharding = shardings[one_of(value, words)];
}

void activation_checkpointing(S& said, const ConfigValue& value) {
  said.recompute = value.flag() ? Recompute::full : Recompute::none;
}

// Defaults of MPTConfig (llmfoundry/models/mpt/configuration_mpt.py).
void complete_llm_foundry(S& said, const ConfigEntries& entries, std::vector<std::string>& notes) {
  if (!said.gated) said.gated = false;
  if (!said.learned_positions) said.learned_positions = true;
  for (const char* other : {"model.attn_config.alibi", "model.attn_config.rope"}) {
    const ConfigEntry* entry = entries.find(other);
    if (entry != nullptr && ConfigValue(entries.source, *entry).flag()) said.learned_positions = false;
  }
  if (!said.tied_embeddings) said.tied_embeddings = true;
  if (!said.biases) said.biases = true;
  if (!said.layer_norm) said.layer_norm = true;
  if (said.experts && !said.top_k) said.top_k = 1;
  if (const ConfigEntry* ratio = entries.find("model.expansion_ratio"); said.hidden && !said.ffn) {
    said.ffn = *said.hidden * (ratio != nullptr ? ConfigValue(entries.source, *ratio).count(1, 1000) : 4);
  }
  if (said.experts) said.expert_ffn = said.ffn;
  const ConfigEntry* strategy = entries.find("fsdp_config.sharding_strategy");
  if (strategy != nullptr && contains_ignoring_case(strategy->value, "hybrid")) {
    notes.emplace_back("hybrid sharding: the number of ranks that share one copy is not given, so all are assumed");
  }
}

constexpr KeyRule llm_foundry_rules[] = {
    {"model.pretrained_model_name_or_path", [](S& said, const ConfigValue& value) { said.model_name = value.text(); }},
    {"model.d_model", says_count<&S::hidden>},
    {"model.n_heads", says_count<&S::heads>},
    {"model.n_layers", says_count<&S::layers>},
    {"model.expansion_ratio", says_nothing},
    {"model.max_seq_len", says_count<&S::sequence_length>},
    {"model.vocab_size", says_count<&S::vocabulary>},
    {"model.no_bias", says_opposite<&S::biases>},
    {"model.learned_pos_emb", says_flag<&S::learned_positions>},
    {"model.tie_word_embeddings", says_flag<&S::tied_embeddings>},
    {"model.norm_type", says_normalization},
    {"model.attn_config.attn_type", attention_type},
    {"model.attn_config.kv_n_heads", says_count<&S::kv_heads>},
    {"model.attn_config.alibi", says_nothing},
    {"model.attn_config.rope", says_nothing},
    {"model.attn_config.qk_ln", says_flag<&S::qk_norm>},
    {"model.ffn_config.ffn_type", ffn_type},
    {"model.ffn_config.ffn_hidden_size", says_count<&S::ffn>},
    {"model.ffn_config.moe_num_experts", says_count<&S::experts>},
    {"model.ffn_config.moe_top_k", says_count<&S::top_k>},
    {"max_seq_len", says_count<&S::sequence_length>},
    {"variables.max_seq_len", says_count<&S::sequence_length>},
    {"global_train_batch_size", says_count<&S::global_batch>},
    {"device_train_microbatch_size", says_small_count<&S::micro_batch>},
    {"precision", precision},
    {"fsdp_config.sharding_strategy", sharding_strategy},
    {"fsdp_config.activation_checkpointing", activation_checkpointing},
    {"fsdp_config.activation_cpu_offload", says_flag<&S::offloads_activations>},
};

}  // namespace

ConfigFormat llm_foundry_format() {
  return {.name = "llm-foundry",
          .summary = "YAML of llm-foundry's train.py",
          .rules = llm_foundry_rules,
          .complete = complete_llm_foundry};
}

}  // namespace foretoken
