// DeepSpeed's JSON (deepspeed.ai/docs/config-json). It says nothing of the model.
#include <array>

#include "base/text.h"
#include "training/import/formats/list.h"

namespace foretoken {
namespace {

using S = SaidSettings;

void bf16_enabled(S& said, const ConfigValue& value) {
  if (value.flag()) said.precision = "bf16";
}
void fp16_enabled(S& said, const ConfigValue& value) {
  if (value.flag()) said.precision = "fp16";
}

void complete_deepspeed(S& said, const ConfigEntries& entries, std::vector<std::string>& notes) {
  if (!said.sharding) said.sharding = Sharding::none;
  runs_on_deepspeed(said);
  if (entries.find("gradient_clipping") == nullptr) said.clips_gradients = false;  // deepspeed/runtime/constants.py
  note_unknown_optimizer(said, entries, "optimizer.type", notes);
  takes_momentum(said, entries, std::array<std::string_view, 1>{"optimizer.params.momentum"});
  for (const char* key : {"zero_optimization.offload_optimizer.device", "zero_optimization.offload_param.device"}) {
    const ConfigEntry* device = entries.find(key);
    if (device == nullptr || !equal_ignoring_case(device->value, "nvme")) continue;
    notes.emplace_back(
        "what goes to NVMe drives is predicted as if it went to host memory: the drives' own time is left out");
    break;
  }
  // ZeRO-3 always fetches ahead: as the stack has it.
  if (said.sharding == Sharding::parameters && said.overlaps_gradients.value_or(false)) said.overlaps_gradients.reset();
}

constexpr KeyRule deepspeed_rules[] = {
    {"train_batch_size", says_count<&S::global_batch>},
    {"train_micro_batch_size_per_gpu", says_small_count<&S::micro_batch>},
    {"gradient_accumulation_steps", says_small_count<&S::accumulation>},
    {"zero_optimization.stage", says_zero_stage},
    {"zero_optimization.overlap_comm", says_flag<&S::overlaps_gradients>},
    {"zero_optimization.offload_optimizer.device", says_offload_device<&S::offloads_optimizer>},
    {"zero_optimization.offload_param.device", says_offload_device<&S::offloads_parameters>},
    {"zero_optimization.cpu_offload", says_flag<&S::offloads_optimizer>},
    {"gradient_clipping", says_clipping},
    {"bf16.enabled", bf16_enabled},
    {"bfloat16.enabled", bf16_enabled},
    {"fp16.enabled", fp16_enabled},
    {"activation_checkpointing.cpu_checkpointing", says_flag<&S::offloads_activations>},
    {"optimizer.type", says_optimizer},
    {"zero_optimization.offload_optimizer.ratio", says_share<&S::optimizer_offload_fraction>},
    {"tensor_parallel.autotp_size", says_count_or_none<&S::tensor>},
    {"sequence_parallel_size", says_small_count<&S::context>},
    {"pipeline.stages", says_small_count<&S::pipeline>},
};

constexpr std::string_view deepspeed_harmless[] = {"optimizer.params.*",
                                                   "optimizer.legacy_fusion",
                                                   "scheduler.*",
                                                   "prescale_gradients",
                                                   "gradient_predivide_factor",
                                                   "steps_per_print",
                                                   "wall_clock_breakdown",
                                                   "memory_breakdown",
                                                   "dump_state",
                                                   "seed",
                                                   "zero_allow_untested_optimizer",
                                                   "zero_force_ds_cpu_optimizer",
                                                   "fp16.*",
                                                   "bf16.*",
                                                   "flops_profiler.*",
                                                   "comms_logger.*",
                                                   "monitor_config.*",
                                                   "tensorboard.*",
                                                   "wandb.*",
                                                   "comet.*",
                                                   "csv_monitor.*",
                                                   "checkpoint.*",
                                                   "elasticity.*",
                                                   "autotuning.*",
                                                   "data_types.*",
                                                   "zero_optimization.stage3_gather_16bit_weights_on_model_save",
                                                   "zero_optimization.stage3_gather_fp16_weights_on_model_save",
                                                   "zero_optimization.load_from_fp32_weights",
                                                   "zero_optimization.elastic_checkpoint",
                                                   "zero_optimization.ignore_unused_parameters",
                                                   "zero_optimization.contiguous_gradients",
                                                   "zero_optimization.allgather_partitions",
                                                   "zero_optimization.reduce_scatter",
                                                   "zero_optimization.offload_optimizer.pin_memory",
                                                   "zero_optimization.offload_param.pin_memory",
                                                   "activation_checkpointing.profile",
                                                   "activation_checkpointing.synchronize_checkpoint_boundary",
                                                   "activation_checkpointing.contiguous_memory_optimization",
                                                   "activation_checkpointing.number_checkpoints"};

constexpr UnmodeledKey deepspeed_not_modeled[] = {{"zero_optimization.stage3_prefetch_bucket_size"},
                                                  {"zero_optimization.stage3_param_persistence_threshold"},
                                                  {"zero_optimization.stage3_model_persistence_threshold"},
                                                  {"zero_optimization.stage3_max_live_parameters"},
                                                  {"zero_optimization.stage3_max_reuse_distance"},
                                                  {"zero_optimization.stage3_use_all_reduce_for_fetch_params"},
                                                  {"zero_optimization.stage3_module_granularity_threshold"},
                                                  {"zero_optimization.allgather_bucket_size"},
                                                  {"zero_optimization.reduce_bucket_size"},
                                                  {"zero_optimization.use_multi_rank_bucket_allreduce"},
                                                  {"zero_optimization.round_robin_gradients"},
                                                  {"zero_optimization.sub_group_size"},
                                                  {"zero_optimization.zero_hpz_partition_size"},
                                                  {"zero_optimization.zero_quantized_*"},
                                                  {"zero_optimization.mics_*"},
                                                  {"zero_optimization.offload_optimizer.nvme_path"},
                                                  {"zero_optimization.offload_optimizer.buffer_*"},
                                                  {"zero_optimization.offload_optimizer.pipeline*"},
                                                  {"zero_optimization.offload_optimizer.fast_init"},
                                                  {"zero_optimization.offload_optimizer.super_offload"},
                                                  {"zero_optimization.offload_param.nvme_path"},
                                                  {"zero_optimization.offload_param.buffer_*"},
                                                  {"zero_optimization.offload_param.max_in_cpu"},
                                                  {"aio.*"},
                                                  {"amp.*"},
                                                  {"bf16.immediate_grad_update"},
                                                  {"communication_data_type"},
                                                  {"fp32_allreduce"},
                                                  {"data_types.grad_accum_dtype"},
                                                  {"activation_checkpointing.partition_activations"},
                                                  {"compression_training.*"},
                                                  {"curriculum_learning.*"},
                                                  {"data_efficiency.*"},
                                                  {"sparse_attention.*"},
                                                  {"compile.*"},
                                                  {"pipeline.*"}};

}  // namespace

ConfigFormat deepspeed_format() {
  return {.name = "deepspeed",
          .summary = "JSON of DeepSpeed",
          .rules = deepspeed_rules,
          .complete = complete_deepspeed,
          .harmless = deepspeed_harmless,
          .not_modeled = deepspeed_not_modeled,
          .leaves_recompute_open = true};
}

}  // namespace foretoken
