// YAML of `accelerate config` (huggingface.co/docs/accelerate): who shards what, not the model or the batch.
#include "base/text.h"
#include "training/import/formats/list.h"

namespace foretoken {
namespace {

using S = SaidSettings;

void mixed(S& said, const ConfigValue& value) {
  static constexpr std::string_view words[] = {"no", "fp16", "bf16", "fp8"};
  constexpr std::string_view names[] = {"bf16", "fp16", "bf16", "fp8-delayed"};
  const size_t word = one_of(value, words);
  if (word > 0) said.precision = names[word];
}

void fsdp_offload(S& said, const ConfigValue& value) {
  said.offloads_parameters = said.offloads_optimizer = value.flag();
}

// Shards inside each node; FSDP1 may name its strategy in either key.
bool asks_for_hybrid(const ConfigEntries& entries) {
  for (const char* key : {"fsdp_config.fsdp_sharding_strategy", "fsdp_config.fsdp_reshard_after_forward"}) {
    const ConfigEntry* entry = entries.find(key);
    if (entry == nullptr) continue;
    if (contains_ignoring_case(entry->value, "hybrid") || entry->value == "4" || entry->value == "5") return true;
  }
  return false;
}

void checkpointing(S& said, const ConfigValue& value) {
  said.recompute = value.flag() ? Recompute::full : Recompute::none;
}

void megatron_recompute(S& said, const ConfigValue& value) {
  said.recompute = value.flag() ? Recompute::selective : Recompute::none;
}

void shards(S& said, const ConfigValue& value) {
  if (value.count(1, 100'000) > 1) said.sharding = Sharding::parameters;
}

void complete_accelerate(S& said, const ConfigEntries& entries, std::vector<std::string>&) {
  const ConfigEntry* type = entries.find("distributed_type");
  const std::string kind = type == nullptr ? "NO" : type->value;
  const bool megatron = equal_ignoring_case(kind, "MEGATRON_LM");
  if (!megatron) said.stack = "transformers";
  if (equal_ignoring_case(kind, "DEEPSPEED")) runs_on_deepspeed(said);
  if (equal_ignoring_case(kind, "FSDP") && !said.sharding) said.sharding = Sharding::parameters;
  if (!said.sharding) said.sharding = Sharding::none;
  if (said.sharded_copies == 1) said.sharded_copies.reset();
  if (said.devices && said.nodes.value_or(1) > 1 && *said.devices % *said.nodes == 0 && asks_for_hybrid(entries)) {
    said.shard_ranks = *said.devices / *said.nodes;
  }
  if (megatron) said.micro_batch.reset();
}

constexpr KeyRule accelerate_rules[] = {
    {"distributed_type", says_nothing},
    {"num_processes", says_small_count<&S::devices>},
    {"num_machines", says_small_count<&S::nodes>},
    {"mixed_precision", mixed},
    {"gradient_accumulation_steps", says_small_count<&S::accumulation>},
    {"fsdp_config.fsdp_sharding_strategy", says_fsdp_strategy},
    {"fsdp_config.fsdp_reshard_after_forward", says_fsdp_reshard},
    {"fsdp_config.fsdp_offload_params", fsdp_offload},
    {"fsdp_config.fsdp_activation_checkpointing", checkpointing},
    {"deepspeed_config.zero_stage", says_zero_stage},
    {"deepspeed_config.gradient_accumulation_steps", says_small_count<&S::accumulation>},
    {"deepspeed_config.gradient_clipping", says_clipping},
    {"deepspeed_config.offload_optimizer_device", says_offload_device<&S::offloads_optimizer>},
    {"deepspeed_config.offload_param_device", says_offload_device<&S::offloads_parameters>},
    {"deepspeed_config.deepspeed_config_file", says_deepspeed_file},
    {"megatron_lm_config.megatron_lm_gradient_clipping", says_clipping},
    {"megatron_lm_config.megatron_lm_tp_degree", says_small_count<&S::tensor>},
    {"megatron_lm_config.megatron_lm_pp_degree", says_small_count<&S::pipeline>},
    {"megatron_lm_config.megatron_lm_num_micro_batches", says_small_count<&S::accumulation>},
    {"megatron_lm_config.megatron_lm_sequence_parallelism", says_flag<&S::sequence_parallel>},
    {"megatron_lm_config.megatron_lm_recompute_activations", megatron_recompute},
    {"megatron_lm_config.megatron_lm_use_distributed_optimizer", says_optimizer_sharding},
    {"parallelism_config.parallelism_config_dp_replicate_size", says_small_count<&S::sharded_copies>},
    {"parallelism_config.parallelism_config_dp_shard_size", shards},
    {"parallelism_config.parallelism_config_tp_size", says_small_count<&S::tensor>},
    {"parallelism_config.parallelism_config_cp_size", says_small_count<&S::context>},
};

constexpr std::string_view accelerate_harmless[] = {"compute_environment",
                                                    "debug",
                                                    "downcast_bf16",
                                                    "enable_cpu_affinity",
                                                    "gpu_ids",
                                                    "machine_rank",
                                                    "main_process_ip",
                                                    "main_process_port",
                                                    "main_training_function",
                                                    "rdzv_backend",
                                                    "same_network",
                                                    "tpu_*",
                                                    "use_cpu",
                                                    "deepspeed_config.zero3_*",
                                                    "deepspeed_config.deepspeed_multinode_launcher",
                                                    "deepspeed_config.deepspeed_hostfile",
                                                    "fsdp_config.fsdp_version",
                                                    "fsdp_config.fsdp_auto_wrap_policy",
                                                    "fsdp_config.fsdp_transformer_layer_cls_to_wrap",
                                                    "fsdp_config.fsdp_min_num_params",
                                                    "fsdp_config.fsdp_state_dict_type",
                                                    "fsdp_config.fsdp_sync_module_states",
                                                    "fsdp_config.fsdp_use_orig_params",
                                                    "fsdp_config.fsdp_cpu_ram_efficient_loading",
                                                    "fsdp_config.fsdp_backward_prefetch*",
                                                    "fsdp_config.fsdp_forward_prefetch"};

}  // namespace

ConfigFormat accelerate_format() {
  return {.name = "accelerate",
          .summary = "YAML of Hugging Face Accelerate",
          .rules = accelerate_rules,
          .complete = complete_accelerate,
          .harmless = accelerate_harmless,
          .leaves_recompute_open = true};
}

}  // namespace foretoken
