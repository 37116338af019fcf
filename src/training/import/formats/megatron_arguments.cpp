// Arguments of Megatron-LM's pretrain_gpt.py (megatron/training/arguments.py), as scripts list them.
#include <fmt/format.h>

#include "training/import/formats/list.h"

namespace foretoken {
namespace {

using S = SaidSettings;

// Recomputes the attention core.
void recompute_activations(S& said, const ConfigValue& value) {
  if (value.flag() && !said.recompute) said.recompute = Recompute::selective;
}

// A wider precision does not replace what an FP8 or FP4 recipe said.
void bf16(S& said, const ConfigValue& value) {
  if (value.flag() && !said.precision) said.precision = "bf16";
}
void fp16(S& said, const ConfigValue& value) {
  if (value.flag() && !said.precision) said.precision = "fp16";
}
bool is_bf16(const ConfigValue& value) {
  static constexpr std::string_view words[] = {"fp32", "bf16"};
  return one_of(value, words) == 1;
}
void checks_flag(S&, const ConfigValue& value) {
  value.flag();
}
void checks_gradient_format(S&, const ConfigValue& value) {
  is_bf16(value);
}
void fp8_format(S& said, const ConfigValue& value) {
  static constexpr std::string_view words[] = {"e4m3", "hybrid"};
  one_of(value, words);
  if (!said.precision || *said.precision == "bf16") said.precision = "fp8-delayed";
}
void fp4_format(S& said, const ConfigValue& value) {
  static constexpr std::string_view words[] = {"e2m1"};
  one_of(value, words);
  said.precision = "nvfp4";
}

// Each overlap is off unless a flag turns it on (megatron/training/arguments.py); with its flag, it is as in published
// runs of the stack. FSDP has its own.
void complete_overlaps(S& said, const ConfigEntries& entries, std::vector<std::string>& notes) {
  std::string missing;
  const auto look_for = [&](const char* flag, bool matters, std::optional<bool>& overlaps) {
    if (entries.find(flag) != nullptr) return;
    overlaps = false;
    if (matters) missing += fmt::format("{}--{}", missing.empty() ? "" : ", ", flag);
  };
  const int64_t tensor = said.tensor.value_or(1), replica = tensor * said.pipeline.value_or(1);
  const bool may_have_replicas =
      !said.nodes || !said.devices_per_node || *said.nodes * *said.devices_per_node > replica;
  const Sharding sharding = said.sharding.value_or(Sharding::none);
  if (sharding <= Sharding::optimizer) {
    look_for("overlap-grad-reduce", may_have_replicas, said.overlaps_gradients);
    look_for("overlap-param-gather", may_have_replicas && sharding == Sharding::optimizer, said.overlaps_parameters);
  }
  // It needs sequence parallelism.
  look_for("tp-comm-overlap", tensor > 1 && said.sequence_parallel.value_or(false), said.overlaps_tensor);
  look_for("overlap-moe-expert-parallel-comm", false, said.overlaps_experts);  // which few scripts have
  if (!missing.empty()) {
    notes.push_back(fmt::format(
        "communication that these flags would hide is waited for, because the script lacks them: {}", missing));
  }
}

// What is sent in 16 bits decides, whatever else is said; beside weights in bf16 sums are in fp32 unless told
// otherwise.
int64_t gradient_bytes(const ConfigEntries& entries) {
  const auto says = [&](std::string_view flag, const auto& wanted) {
    bool result = false;  // the last of several counts
    for (const ConfigEntry& entry : entries.entries) {
      if (entry.key == flag && !entry.computed) result = wanted(ConfigValue(entries.source, entry));
    }
    return result;
  };
  const auto is_on = [](const ConfigValue& value) { return value.flag(); };
  if (says("grad-reduce-in-bf16", is_on) || says("main-grads-dtype", is_bf16)) return 2;
  if (says("accumulate-allreduce-grads-in-fp32", is_on)) return 4;
  return says("fp16", is_on) ? 2 : 4;
}

// Where the file says nothing: megatron/training/arguments.py.
void complete_megatron(S& said, const ConfigEntries& entries, std::vector<std::string>& notes) {
  if (!said.precision.value_or("bf16").starts_with("fp8")) said.fp8_gathers.reset();
  keep_recompute_layers_of_blocks(said, entries.find("recompute-method"));
  take_usual_dropout(said, "Megatron-LM", notes);
  take_expert_tensor_ranks(said, notes);
  complete_overlaps(said, entries, notes);
  said.gradient_bytes = gradient_bytes(entries);
  if (!said.gated) said.gated = false;
  if (!said.learned_positions) said.learned_positions = true;
  if (!said.tied_embeddings) said.tied_embeddings = true;
  if (!said.biases) said.biases = true;
  if (!said.layer_norm) said.layer_norm = true;
  if (entries.find("padded-vocab-size") == nullptr && !said.vocabulary_multiple) said.vocabulary_multiple = 128;
  if (said.experts && !said.top_k) said.top_k = 2;
  if (!said.ffn && said.hidden) said.ffn = *said.gated ? *said.hidden * 4 * 2 / 3 / 64 * 64 : 4 * *said.hidden;
}

constexpr KeyRule megatron_rules[] = {
    {"num-layers", says_count<&S::layers>},
    {"hidden-size", says_count<&S::hidden>},
    {"ffn-hidden-size", says_count<&S::ffn>},
    {"num-attention-heads", says_count<&S::heads>},
    {"group-query-attention", says_nothing},  // num-query-groups comes with it
    {"num-query-groups", says_count<&S::kv_heads>},
    {"kv-channels", says_count<&S::head_dim>},
    {"seq-length", says_count<&S::sequence_length>},
    {"max-position-embeddings", says_count<&S::positions>},
    {"vocab-size", says_count<&S::vocabulary>},
    {"padded-vocab-size", says_count<&S::vocabulary>},
    {"make-vocab-size-divisible-by", says_count<&S::vocabulary_multiple>},
    {"tokenizer-type", says_tokenizer},
    {"use-flash-attn", says_nothing},  // attention is always fused here
    {"swiglu", says_flag<&S::gated>},
    {"hidden-dropout", says_rate<&S::hidden_dropout>},
    {"attention-dropout", says_rate<&S::attention_dropout>},
    {"position-embedding-type", says_positions},
    {"use-rotary-position-embeddings", says_opposite<&S::learned_positions>},
    {"untie-embeddings-and-output-weights", says_opposite<&S::tied_embeddings>},
    {"disable-bias-linear", says_opposite<&S::biases>},
    {"normalization", says_normalization},
    {"qk-layernorm", says_flag<&S::qk_norm>},
    {"multi-latent-attention", says_flag<&S::latent_attention>},
    {"num-experts", says_count<&S::experts>},
    {"moe-router-topk", says_count<&S::top_k>},
    {"moe-ffn-hidden-size", says_count<&S::expert_ffn>},
    {"moe-shared-expert-intermediate-size", says_count<&S::shared_ffn>},
    {"moe-grouped-gemm", says_nothing},  // as stacks run experts anyway
    {"moe-token-dispatcher-type", says_token_dispatcher},
    {"moe-flex-dispatcher-backend", says_flex_dispatcher},
    {"moe-enable-deepep", says_deepep},
    {"mtp-num-layers", says_count_or_none<&S::draft_layers>},
    {"tensor-model-parallel-size", says_small_count<&S::tensor>},
    {"pipeline-model-parallel-size", says_small_count<&S::pipeline>},
    {"context-parallel-size", says_small_count<&S::context>},
    {"expert-model-parallel-size", says_small_count<&S::expert>},
    {"expert-tensor-parallel-size", says_small_count<&S::expert_tensor>},
    {"cp-comm-type", says_context_exchange},
    {"num-layers-per-virtual-pipeline-stage", says_small_count<&S::layers_per_virtual_stage>},
    {"num-virtual-stages-per-pipeline-rank", says_small_count<&S::virtual_stages>},
    {"decoder-first-pipeline-num-layers", says_small_count<&S::first_stage_layers>},
    {"decoder-last-pipeline-num-layers", says_small_count<&S::last_stage_layers>},
    {"account-for-embedding-in-pipeline-split", says_flag<&S::embedding_in_split>},
    {"account-for-loss-in-pipeline-split", says_flag<&S::loss_in_split>},
    {"sequence-parallel", says_flag<&S::sequence_parallel>},
    {"use-distributed-optimizer", says_optimizer_sharding},
    {"overlap-grad-reduce", says_nothing},  // complete_overlaps
    {"overlap-param-gather", says_nothing},
    {"tp-comm-overlap", says_nothing},
    {"overlap-moe-expert-parallel-comm", says_nothing},
    {"num-distributed-optimizer-instances", says_small_count<&S::sharded_copies>},
    {"data-parallel-sharding-strategy", says_sharding_strategy},
    {"use-megatron-fsdp", says_full_sharding},
    {"use-torch-fsdp2", says_full_sharding},
    {"optimizer-cpu-offload", says_flag<&S::offloads_optimizer>},
    {"optimizer-offload-fraction", says_share<&S::optimizer_offload_fraction>},
    {"use-precision-aware-optimizer", says_nothing},
    {"micro-batch-size", says_small_count<&S::micro_batch>},
    {"global-batch-size", says_count<&S::global_batch>},
    {"recompute-granularity", says_recompute_granularity},
    {"recompute-modules", says_recompute_modules},
    {"recompute-activations", recompute_activations},
    {"recompute-method", says_nothing},
    {"recompute-num-layers", says_small_count<&S::recompute_layers>},
    {"bf16", bf16},
    {"fp16", fp16},
    {"fp8-format", fp8_format},
    {"fp8-recipe", says_fp8_recipe},
    {"fp4-format", fp4_format},
    {"fp8-param-gather", says_flag<&S::fp8_gathers>},
    {"nnodes", says_small_count<&S::nodes>},
    {"clip-grad", says_clipping},
    {"accumulate-allreduce-grads-in-fp32", checks_flag},
    {"grad-reduce-in-bf16", checks_flag},
    {"main-grads-dtype", checks_gradient_format},
    {"nproc-per-node", says_count_or_none<&S::devices_per_node>},
};

constexpr std::string_view megatron_harmless[] = {"adam-*",
                                                  "apply-layernorm-1p",
                                                  "async-save",
                                                  "attention-softmax-in-fp32",
                                                  "calculate-per-token-loss",
                                                  "check-for-nan-in-loss-and-grad",
                                                  "check-weight-hash-*",
                                                  "ckpt-*",
                                                  "data-cache-path",
                                                  "data-path",
                                                  "dataloader-type",
                                                  "decoupled-*",
                                                  "disable-straggler-on-startup",
                                                  "dist-ckpt-format",
                                                  "distributed-backend",
                                                  "distributed-timeout-minutes",
                                                  "end-weight-decay",
                                                  "eod-mask-loss",
                                                  "eval-*",
                                                  "exit-*",
                                                  "finetune",
                                                  "fp8-amax-*",
                                                  "fp8-interval",
                                                  "fp8-margin",
                                                  "init-method-std",
                                                  "load",
                                                  "log-*",
                                                  "logging-level",
                                                  "lr",
                                                  "lr-*",
                                                  "manual-gc*",
                                                  "master-addr",
                                                  "master-port",
                                                  "master_addr",
                                                  "master_port",
                                                  "merge-file",
                                                  "min-lr",
                                                  "mmap-bin-files",
                                                  "mock-data",
                                                  "moe-aux-loss-coeff",
                                                  "moe-router-load-balancing-type",
                                                  "moe-z-loss-coeff",
                                                  "no-check-for-nan-in-loss-and-grad",
                                                  "no-ckpt-*",
                                                  "no-create-attention-mask-in-dataloader",
                                                  "no-initialization",
                                                  "no-load-*",
                                                  "no-mmap-bin-files",
                                                  "no-position-embedding",
                                                  "no-save-*",
                                                  "node-rank",
                                                  "node_rank",
                                                  "norm-epsilon",
                                                  "num-workers",
                                                  "override-opt_param-scheduler",
                                                  "rerun-*",
                                                  "reset-*",
                                                  "rotary-*",
                                                  "save",
                                                  "save-*",
                                                  "seed",
                                                  "split",
                                                  "start-weight-decay",
                                                  "tensorboard-*",
                                                  "tiktoken-*",
                                                  "timing-log-*",
                                                  "tokenizer-model",
                                                  "train-iters",
                                                  "train-samples",
                                                  "use-checkpoint-*",
                                                  "use-cpu-initialization",
                                                  "use-mcore-models",
                                                  "vocab-file",
                                                  "wandb-*",
                                                  "weight-decay*"};

constexpr UnmodeledKey megatron_not_modeled[] = {{"attention-backend"},
                                                 {"cross-entropy-*"},
                                                 {"cuda-graph-*"},
                                                 {"ddp-bucket-size"},
                                                 {"ddp-num-buckets"},
                                                 {"delay-wgrad-compute"},
                                                 {"empty-unused-memory-level"},
                                                 {"enable-cuda-graph"},
                                                 {"microbatch-group-size-per-virtual-pipeline-stage"},
                                                 {"moe-permute-fusion"},
                                                 {"moe-router-fusion"},
                                                 {"no-bias-*"},
                                                 {"no-gradient-accumulation-fusion"},
                                                 {"no-masked-softmax-fusion"},
                                                 {"no-persist-layer-norm"},
                                                 {"no-rope-fusion"},
                                                 {"profile*"},
                                                 {"rampup-batch-size"},
                                                 {"transformer-impl"},
                                                 {"use-flash-attn"},
                                                 {"use-tp-pp-dp-mapping"}};

}  // namespace

ConfigFormat megatron_arguments_format() {
  return {.name = "megatron-lm",
          .summary = "arguments of Megatron-LM in a script or a file",
          .syntax = ConfigSyntax::arguments,
          .rules = megatron_rules,
          .complete = complete_megatron,
          .harmless = megatron_harmless,
          .not_modeled = megatron_not_modeled};
}

}  // namespace foretoken
