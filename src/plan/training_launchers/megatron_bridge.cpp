#include "plan/training_launchers/list.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/counted.h"
#include "plan/megatron_flags.h"
#include "plan/training_launchers/launch_limits.h"

namespace foretoken {
namespace {

std::string bridge_refusal(const TrainingQuestion& question) {
  const TrainingPlan& plan = question.plan;
  return first_reason({without_other_schedules(plan, "Megatron-Bridge"),
                       plan.recompute == Recompute::op ? "Megatron-Bridge has no recomputation by operator" : "",
                       without_quantized_base(question, "Megatron-Bridge"),
                       without_other_offloads(question, "Megatron-Bridge", megatron_host_memory),
                       without_other_optimizers(question, "Megatron-Bridge"), unsharded_offload(question),
                       plan.layout.empty() ? "" : "its file is read without the layout of stages"});
}

std::string bridge_precision(std::string_view recipe) {
  constexpr std::pair<std::string_view, std::string_view> names[] = {
      {"bf16", "bf16_mixed"},
      {"fp16", "fp16_mixed"},
      {"fp8", "bf16_with_fp8_current_scaling_mixed"},
      {"fp8-delayed", "bf16_with_fp8_delayed_scaling_mixed"},
      {"fp8-current", "bf16_with_fp8_current_scaling_mixed"},
      {"fp8-block", "bf16_with_fp8_subchannel_scaling_mixed"},
      {"mxfp8", "bf16_with_mxfp8_mixed"},
      {"nvfp4", "bf16_with_nvfp4_mixed"}};
  for (const auto& [name, text] : names) {
    if (name == recipe) return std::string(text);
  }
  throw no_format_like(recipe, "Megatron-Bridge");
}

std::string bridge_sharding(const TrainingPlan& plan, bool fp32_gradients) {
  constexpr std::string_view strategies[] = {"no_shard", "optim", "optim_grads", "optim_grads_params"};
  std::string text = "ddp:\n";
  text += fmt::format("  use_distributed_optimizer: {}\n", plan.sharding != Sharding::none);
  text += fmt::format("  grad_reduce_in_fp32: {}  # set it in the recipe's mixed_precision too, which overrides it\n",
                      fp32_gradients);
  if (plan.sharding > Sharding::optimizer) {
    text += fmt::format("  use_megatron_fsdp: true\n  data_parallel_sharding_strategy: {}\n",
                        strategies[static_cast<size_t>(plan.sharding)]);
  }
  if (plan.shard_ranks > 0) {
    text += fmt::format("  num_distributed_optimizer_instances: {}\n", shard_copies(plan));
  }
  return text;
}

std::string bridge_recompute(const TrainingPlan& plan) {
  if (plan.recompute == Recompute::none) return "";
  if (plan.recompute == Recompute::selective) {
    std::string modules;
    for (size_t i = 0; i < layer_module_count; ++i) {
      const auto module = static_cast<LayerModule>(i);
      if (plan.recompute_modules.has(module)) {
        modules += fmt::format("{}{}", modules.empty() ? "" : ", ", layer_module_name(module));
      }
    }
    return fmt::format("  recompute_granularity: selective\n  recompute_modules: [{}]\n", modules);
  }
  const bool some = plan.recompute_layers > 0;
  return fmt::format("  recompute_granularity: full\n  recompute_method: {}\n  recompute_num_layers: {}\n",
                     some ? "block" : "uniform", some ? plan.recompute_layers : 1);
}

std::string bridge_adapters(const LoraAdapter& lora) {
  std::string modules = lora.on_attention ? "linear_qkv, linear_proj" : "";
  if (lora.on_mlp) modules += fmt::format("{}linear_fc1, linear_fc2", modules.empty() ? "" : ", ");
  return fmt::format("peft:\n  dim: {}\n  target_modules: [{}]\n", lora.rank, modules);
}

// Where nothing else was priced, the recipe's own dispatcher stays.
std::string bridge_exchanges(const TrainingPlan& plan) {
  std::string text;
  if (plan.parallel.context > 1) {
    text += fmt::format("  cp_comm_type: {}\n", megatron_exchange_name(plan.context_exchange));
  }
  switch (plan.dispatcher) {
    case TokenDispatcher::usual:
      return text;
    case TokenDispatcher::all_to_all:
      return text + "  moe_token_dispatcher_type: alltoall\n";
    case TokenDispatcher::deepep:
    case TokenDispatcher::hybridep:
      break;
  }
  return text + fmt::format("  moe_token_dispatcher_type: flex\n  moe_flex_dispatcher_backend: {}\n",
                            token_dispatcher_name(plan.dispatcher));
}

std::string bridge_file(const TrainingQuestion& question) {
  const TrainingPlan plan = plan_for_megatron(question);
  const ParallelPlan& p = plan.parallel;
  std::string text = fmt::format(
      "# Overrides of Megatron-Bridge's {}recipe of {}, for {} of {} GPUs\nmodel:\n  seq_length: {}\n"
      "  tensor_model_parallel_size: {}\n  pipeline_model_parallel_size: {}\n  context_parallel_size: {}\n"
      "  expert_model_parallel_size: {}\n  expert_tensor_parallel_size: {}\n  sequence_parallel: {}\n",
      question.job.lora.rank > 0 ? "LoRA (peft) " : "", question.job.model.name,
      counted(launched_nodes(question), "node"), launched_devices_of_a_node(question), question.job.sequence_length,
      p.tensor, p.pipeline, p.context, p.expert, std::max<int64_t>(1, p.tensor / p.expert), p.sequence && p.tensor > 1);
  text += bridge_exchanges(plan);
  if (plan.virtual_stages > 1) {
    text += fmt::format("  virtual_pipeline_model_parallel_size: {}\n", plan.virtual_stages);
  }
  if (plan.embedding_in_split) text += "  account_for_embedding_in_pipeline_split: true\n";
  if (plan.loss_in_split) text += "  account_for_loss_in_pipeline_split: true\n";
  text += fmt::format("  hidden_dropout: {}\n  attention_dropout: {}\n", dropout_rate(question.job.dropout.hidden),
                      dropout_rate(question.job.dropout.attention));
  text += bridge_recompute(plan);
  text += fmt::format("train:\n  micro_batch_size: {}\n  global_batch_size: {}\nmixed_precision: {}\n",
                      plan.micro_batch, plan.global_batch, bridge_precision(question.job.recipe.name));
  constexpr double fp32_bytes = 4;
  text += bridge_sharding(plan, question.formats.gradient_bytes >= fp32_bytes);
  const double share = question.formats.offloaded_optimizer;
  if (share > 0 || !question.job.clips_gradients) text += "optimizer:\n";
  if (!question.job.clips_gradients) text += "  clip_grad: 0.0\n";
  if (share > 0) {
    text += fmt::format(
        "  use_precision_aware_optimizer: true\n  optimizer_cpu_offload: true\n  optimizer_offload_fraction: {}\n",
        share);
  }
  if (question.job.lora.rank > 0) text += bridge_adapters(question.job.lora);
  return text;
}

}  // namespace

TrainingLauncher megatron_bridge_launcher() {
  return {.name = "megatron-bridge",
          .summary = "YAML of Megatron-Bridge (NeMo)",
          .refusal = bridge_refusal,
          .write = bridge_file,
          .host_memory = megatron_host_memory};
}

}  // namespace foretoken
