// DeepSpeed's JSON (deepspeed.ai/docs/config-json). It says nothing of the model.
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
  for (const ConfigEntry& entry : entries.entries) {
    if (!entry.key.starts_with("activation_checkpointing.")) continue;
    notes.emplace_back(
        "activation_checkpointing says how activations are kept, but not which ones: the model's code decides what is "
        "recomputed");
    break;
  }
  if (!said.sharding) said.sharding = Sharding::none;
  said.stack = "deepspeed";
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
    {"zero_optimization.zero_hpz_partition_size", says_small_count<&S::shard_ranks>},
    {"bf16.enabled", bf16_enabled},
    {"bfloat16.enabled", bf16_enabled},
    {"fp16.enabled", fp16_enabled},
    {"activation_checkpointing.cpu_checkpointing", says_flag<&S::offloads_activations>},
    {"tensor_parallel.autotp_size", says_count_or_none<&S::tensor>},
    {"sequence_parallel_size", says_small_count<&S::context>},
    {"pipeline.stages", says_small_count<&S::pipeline>},
};

}  // namespace

ConfigFormat deepspeed_format() {
  return {
      .name = "deepspeed", .summary = "JSON of DeepSpeed", .rules = deepspeed_rules, .complete = complete_deepspeed};
}

}  // namespace foretoken
