// YAML of NeMo 1.x (conf/megatron_gpt_config.yaml: `model.`, `trainer.`) and of Megatron-Bridge (the dump of its
// ConfigContainer: `model.`, `train.`, `ddp.`, `mixed_precision`).
#include "base/text.h"
#include "training/import/formats/list.h"

namespace foretoken {
namespace {

using S = SaidSettings;

void activation(S& said, const ConfigValue& value) {
  said.gated = contains_ignoring_case(value.text(), "glu");  // swiglu, fast-swiglu, geglu, reglu
}

void trainer_precision(S& said, const ConfigValue& value) {
  if (said.precision && *said.precision != "bf16" && *said.precision != "fp16") return;
  const std::string& text = value.text();
  static constexpr std::string_view words[] = {"bf16", "bf16-mixed", "bf16-true", "16", "16-mixed", "fp16"};
  if (text == "32" || text == "32-true") value.fail("bf16, bf16-mixed, 16 or 16-mixed: fp32 training is not supported");
  said.precision = one_of(value, words) < 3 ? "bf16" : "fp16";
}

// NeMo 1.x: a switch beside the formats; delayed scaling was the only recipe.
void fp8_switch(S& said, const ConfigValue& value) {
  if (equal_ignoring_case(value.text(), "hybrid") || equal_ignoring_case(value.text(), "e4m3") || value.flag()) {
    if (!said.precision || *said.precision == "bf16") said.precision = "fp8-delayed";
  }
}

// Recipes of Megatron-Bridge by name.
void mixed_precision(S& said, const ConfigValue& value) {
  static constexpr std::string_view words[] = {"bf16_mixed",
                                               "fp16_mixed",
                                               "bf16_with_fp8_delayed_scaling_mixed",
                                               "bf16_with_fp8_current_scaling_mixed",
                                               "bf16_with_fp8_subchannel_scaling_mixed",
                                               "bf16_with_mxfp8_mixed",
                                               "bf16_with_nvfp4_mixed"};
  static constexpr std::string_view recipes[] = {"bf16",      "fp16",  "fp8-delayed", "fp8-current",
                                                 "fp8-block", "mxfp8", "nvfp4"};
  said.precision = recipes[one_of(value, words)];
}

void optimizer_name(S& said, const ConfigValue& value) {
  if (contains_ignoring_case(value.text(), "distributed")) said.sharding = Sharding::optimizer;
}

// NeMo scales the MLP by the activation itself; its configs give ffn_hidden_size. Defaults of conf/
// megatron_gpt_config.yaml and of Megatron-Core's TransformerConfig.
void complete_nemo(S& said, const ConfigEntries& entries, std::vector<std::string>& notes) {
  const ConfigEntry* method = entries.find("model.recompute_method");
  keep_recompute_layers_of_blocks(said,
                                  method != nullptr ? method : entries.find("model.activations_checkpoint_method"));
  // A file without sizes changes a recipe that has its own; those of Llama, Qwen and DeepSeek drop nothing.
  if (said.hidden) take_usual_dropout(said, "NeMo", notes);
  if (said.hidden || said.expert_tensor) take_expert_tensor_ranks(said, notes);
  if (!said.gated) said.gated = false;
  if (!said.learned_positions) said.learned_positions = true;
  if (!said.tied_embeddings) said.tied_embeddings = true;
  if (!said.biases) said.biases = true;
  if (!said.layer_norm) said.layer_norm = true;
  if (!said.vocabulary_multiple) said.vocabulary_multiple = 128;
  if (said.experts && !said.top_k) said.top_k = 2;
  if (!said.ffn && said.hidden) said.ffn = 4 * *said.hidden;
}

void says_fp32_gradients(S& said, const ConfigValue& value) {
  said.gradient_bytes = value.flag() ? 4 : 2;
}

constexpr KeyRule nemo_rules[] = {
    {"model.num_layers", says_count<&S::layers>},
    {"model.hidden_size", says_count<&S::hidden>},
    {"model.ffn_hidden_size", says_count<&S::ffn>},
    {"model.num_attention_heads", says_count<&S::heads>},
    {"model.num_query_groups", says_count<&S::kv_heads>},
    {"model.kv_channels", says_count<&S::head_dim>},
    {"model.encoder_seq_length", says_count<&S::sequence_length>},
    {"model.seq_length", says_count<&S::sequence_length>},
    {"dataset.sequence_length", says_count<&S::sequence_length>},
    {"dataset.seq_length", says_count<&S::sequence_length>},
    {"model.max_position_embeddings", says_count<&S::positions>},
    {"model.tokenizer.type", says_tokenizer},
    {"model.vocab_size", says_count<&S::vocabulary>},
    {"model.override_vocab_size", says_count<&S::vocabulary>},
    {"model.make_vocab_size_divisible_by", says_count<&S::vocabulary_multiple>},
    {"model.activation", activation},
    {"model.gated_linear_unit", says_flag<&S::gated>},
    {"model.hidden_dropout", says_rate<&S::hidden_dropout>},
    {"model.attention_dropout", says_rate<&S::attention_dropout>},
    {"model.position_embedding_type", says_positions},
    {"model.share_embeddings_and_output_weights", says_flag<&S::tied_embeddings>},
    {"model.bias", says_flag<&S::biases>},
    {"model.add_bias_linear", says_flag<&S::biases>},
    {"model.normalization", says_normalization},
    {"model.qk_layernorm", says_flag<&S::qk_norm>},
    {"model.multi_latent_attention", says_flag<&S::latent_attention>},
    {"model.num_moe_experts", says_count<&S::experts>},
    {"model.moe_router_topk", says_count<&S::top_k>},
    {"model.moe_ffn_hidden_size", says_count<&S::expert_ffn>},
    {"model.moe_shared_expert_intermediate_size", says_count<&S::shared_ffn>},
    {"model.moe_token_dispatcher_type", says_token_dispatcher},
    {"model.moe_flex_dispatcher_backend", says_flex_dispatcher},
    {"model.moe_enable_deepep", says_deepep},
    {"model.mtp_num_layers", says_count_or_none<&S::draft_layers>},
    {"model.tensor_model_parallel_size", says_small_count<&S::tensor>},
    {"model.pipeline_model_parallel_size", says_small_count<&S::pipeline>},
    {"model.virtual_pipeline_model_parallel_size", says_small_count<&S::virtual_stages>},
    {"model.context_parallel_size", says_small_count<&S::context>},
    {"model.expert_model_parallel_size", says_small_count<&S::expert>},
    {"model.expert_tensor_parallel_size", says_small_count<&S::expert_tensor>},
    {"model.cp_comm_type", says_context_exchange},
    {"model.sequence_parallel", says_flag<&S::sequence_parallel>},
    {"model.num_layers_in_first_pipeline_stage", says_small_count<&S::first_stage_layers>},
    {"model.num_layers_in_last_pipeline_stage", says_small_count<&S::last_stage_layers>},
    {"model.account_for_embedding_in_pipeline_split", says_flag<&S::embedding_in_split>},
    {"model.account_for_loss_in_pipeline_split", says_flag<&S::loss_in_split>},
    {"model.micro_batch_size", says_small_count<&S::micro_batch>},
    {"model.global_batch_size", says_count<&S::global_batch>},
    {"train.micro_batch_size", says_small_count<&S::micro_batch>},
    {"train.global_batch_size", says_count<&S::global_batch>},
    {"model.activations_checkpoint_granularity", says_recompute_granularity},
    {"model.activations_checkpoint_method", says_nothing},
    {"model.activations_checkpoint_num_layers", says_small_count<&S::recompute_layers>},
    {"model.recompute_granularity", says_recompute_granularity},
    {"model.recompute_modules", says_recompute_modules},
    {"model.recompute_method", says_nothing},
    {"model.recompute_num_layers", says_small_count<&S::recompute_layers>},
    {"model.fp8", fp8_switch},
    {"model.fp8_recipe", says_fp8_recipe},
    {"mixed_precision", mixed_precision},
    {"mixed_precision.fp8", fp8_switch},
    {"mixed_precision.fp8_recipe", says_fp8_recipe},
    {"trainer.precision", trainer_precision},
    {"model.optim.name", optimizer_name},
    {"optimizer.use_distributed_optimizer", says_optimizer_sharding},
    {"ddp.use_distributed_optimizer", says_optimizer_sharding},
    {"ddp.grad_reduce_in_fp32", says_fp32_gradients},
    {"optimizer.clip_grad", says_clipping},
    {"trainer.gradient_clip_val", says_clipping},
    {"ddp.num_distributed_optimizer_instances", says_small_count<&S::sharded_copies>},
    {"ddp.data_parallel_sharding_strategy", says_sharding_strategy},
    {"ddp.use_megatron_fsdp", says_full_sharding},
    {"model.fsdp", says_full_sharding},
    {"optimizer.optimizer_cpu_offload", says_flag<&S::offloads_optimizer>},
    {"optimizer.optimizer_offload_fraction", says_share<&S::optimizer_offload_fraction>},
    {"optimizer.use_precision_aware_optimizer", says_nothing},
    {"model.peft.lora_tuning.adapter_dim", says_count<&S::lora_rank>},
    {"peft.dim", says_count<&S::lora_rank>},
    {"peft.target_modules", says_lora_targets},
    {"trainer.num_nodes", says_small_count<&S::nodes>},
    {"trainer.devices", says_count_or_none<&S::devices_per_node>},
};

}  // namespace

ConfigFormat nemo_format() {
  return {
      .name = "nemo", .summary = "YAML of NeMo and of Megatron-Bridge", .rules = nemo_rules, .complete = complete_nemo};
}

}  // namespace foretoken
