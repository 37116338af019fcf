#include "plan/training_launchers/list.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <variant>

#include "plan/megatron_flags.h"
#include "plan/training_launchers/launch_limits.h"

namespace foretoken {
namespace {

// Tokens travel beside the multiplies of experts.
bool overlaps_experts(const TrainingQuestion& question, const TrainingPlan& plan) {
  if (plan.parallel.expert == 1) return false;
  if (plan.overlaps.experts != TrafficOverlap::published) return plan.overlaps.experts == TrafficOverlap::on;
  return question.stack.constants_on(question.cluster.node.device)[expert_exposed] < 1;
}

// What --overlap-moe-expert-parallel-comm is asserted not to meet (megatron/core/transformer/transformer_config.py).
std::string unsupported_expert_overlap(const TrainingQuestion& question) {
  const TrainingPlan& plan = question.plan;
  if (!overlaps_experts(question, plan)) return "";
  const bool repeats_experts = plan.recompute == Recompute::full ||
                               (plan.recompute == Recompute::selective && plan.recompute_modules.has(LayerModule::moe));
  if (repeats_experts)
    return "Megatron-LM cannot overlap expert communication with experts that it recomputes: choose "
           "{recompute_granularity} none, or turn the overlap off";
  return plan.stages() > 1 && plan.virtual_stages == 1
             ? "Megatron-LM overlaps expert communication in pipelines with virtual stages only"
             : "";
}

// Its dispatchers are priced by name; that of the stack's published runs may be any of them.
std::string unnamed_dispatcher(const TrainingPlan& plan) {
  return plan.parallel.expert > 1 && plan.dispatcher == TokenDispatcher::usual
             ? "Megatron-LM's script must name a token dispatcher: set {moe_token_dispatcher} to alltoall, deepep or "
               "hybridep"
             : "";
}

std::string megatron_refusal(const TrainingQuestion& question) {
  const TrainingPlan& plan = question.plan;
  return first_reason({without_adapters(question, "Megatron-LM's pretrain_gpt.py"),
                       without_other_schedules(plan, "Megatron-LM"),
                       without_other_offloads(question, "Megatron-LM", megatron_host_memory),
                       without_other_optimizers(question, "Megatron-LM"), unsharded_offload(question),
                       plan.recompute == Recompute::op ? "Megatron-LM has no recomputation by operator" : "",
                       unnamed_dispatcher(plan), unsupported_expert_overlap(question)});
}

std::string megatron_precision(std::string_view recipe) {
  constexpr std::pair<std::string_view, std::string_view> flags[] = {
      {"bf16", "--bf16"},
      {"fp16", "--fp16"},
      {"fp8", "--bf16 --fp8-format hybrid --fp8-recipe tensorwise"},
      {"fp8-delayed", "--bf16 --fp8-format hybrid --fp8-recipe delayed"},
      {"fp8-current", "--bf16 --fp8-format hybrid --fp8-recipe tensorwise"},
      {"fp8-block", "--bf16 --fp8-format e4m3 --fp8-recipe blockwise"},
      {"mxfp8", "--bf16 --fp8-format e4m3 --fp8-recipe mxfp8"},
      {"nvfp4", "--bf16 --fp4-format e2m1"}};
  for (const auto& [name, text] : flags) {
    if (name == recipe) return std::string(text);
  }
  throw no_format_like(recipe, "Megatron-LM");
}

// Sizes of a model whose layers are alike; others need the arguments of their own recipe.
std::string megatron_sizes(const TrainingQuestion& question) {
  const Model& model = question.job.model;
  const Layer& layer = model.layers.back();
  const auto* attention = std::get_if<Attention>(&layer.mixer);
  const auto* mlp = std::get_if<Mlp>(&layer.feed_forward);
  const auto* moe = std::get_if<Moe>(&layer.feed_forward);
  const bool alike = std::ranges::all_of(model.layers, [&](const Layer& other) { return other == layer; });
  if (attention == nullptr || (mlp == nullptr && moe == nullptr) || !alike) return "";
  std::string text = fmt::format(
      "--num-layers {} --hidden-size {} --num-attention-heads {} --kv-channels {} --ffn-hidden-size {} --vocab-size {}",
      model.layers.size(), model.hidden, attention->heads, attention->head_dim,
      mlp != nullptr ? mlp->width : moe->width, model.vocabulary);
  if (attention->kv_heads < attention->heads) {
    text += fmt::format(" --group-query-attention --num-query-groups {}", attention->kv_heads);
  }
  if (mlp != nullptr ? mlp->gated : moe->gated) text += " --swiglu";
  if (!layer.layer_norm) text += " --normalization RMSNorm";
  if (!attention->output_bias) text += " --disable-bias-linear";
  if (attention->qk_norm) text += " --qk-layernorm";
  if (!model.tied_embeddings) text += " --untie-embeddings-and-output-weights";
  if (model.position_rows == 0) text += " --position-embedding-type rope";
  if (moe != nullptr) {
    text += fmt::format(" --num-experts {} --moe-router-topk {} --moe-ffn-hidden-size {} --moe-grouped-gemm",
                        moe->experts, moe->top_k, moe->width);
    if (moe->shared_width > 0) text += fmt::format(" --moe-shared-expert-intermediate-size {}", moe->shared_width);
  }
  return text;
}

// Megatron-LM keeps gradients in fp32, beside fp16 in fp16, and clips them unless it is told otherwise.
std::string gradient_flag(const TrainingQuestion& question) {
  constexpr double fp32_bytes = 4;
  const bool is_fp32 = question.formats.gradient_bytes >= fp32_bytes;
  const bool is_usual = is_fp32 != (question.job.recipe.name == "fp16");
  const char* other = is_fp32 ? " --accumulate-allreduce-grads-in-fp32" : " --grad-reduce-in-bf16";
  return fmt::format("{}{}", is_usual ? "" : other, question.job.clips_gradients ? "" : " --clip-grad 0");
}

// Megatron-LM waits for all communication unless it is told otherwise.
std::string overlap_flags(const TrainingQuestion& question, const TrainingPlan& plan) {
  const TrafficOverlaps& overlaps = plan.overlaps;
  const auto hides = [](TrafficOverlap overlap) { return overlap != TrafficOverlap::off; };
  std::string flags;
  if (plan.parallel.data * plan.parallel.context > 1 && hides(overlaps.gradients)) {
    flags += " --overlap-grad-reduce";
    if (plan.sharding != Sharding::none && hides(overlaps.parameters)) flags += " --overlap-param-gather";
  }
  const bool usually_hides_tensor = question.stack.habits_of(question.job.recipe.name).hides_tensor;
  const bool hides_tensor =
      overlaps.tensor == TrafficOverlap::published ? usually_hides_tensor : hides(overlaps.tensor);
  if (plan.parallel.tensor > 1 && plan.parallel.sequence && hides_tensor) flags += " --tp-comm-overlap";
  if (overlaps_experts(question, plan)) flags += " --overlap-moe-expert-parallel-comm";
  return flags;
}

std::string offload_flags(const TrainingQuestion& question) {
  const double share = question.formats.offloaded_optimizer;
  if (share == 0) return "";
  return fmt::format(" --use-precision-aware-optimizer --optimizer-cpu-offload --optimizer-offload-fraction {}", share);
}

// What Megatron-LM asserts at the start: with tensor or context ranks, one queue keeps kernels in the order that their
// communication needs (on devices before Blackwell); FSDP and experts that overlap their communication need more.
std::string connection_line(const TrainingQuestion& question, const TrainingPlan& plan) {
  if (plan.sharding > Sharding::optimizer) return "unset CUDA_DEVICE_MAX_CONNECTIONS\n";
  if (overlaps_experts(question, plan)) return "export CUDA_DEVICE_MAX_CONNECTIONS=32\n";
  const ParallelPlan& p = plan.parallel;
  return p.tensor > 1 || p.context > 1 ? "export CUDA_DEVICE_MAX_CONNECTIONS=1\n" : "";
}

std::string megatron_script(const TrainingQuestion& question) {
  const std::string sizes = megatron_sizes(question);
  std::string text = fmt::format("#!/bin/bash\n# {}\n", question.job.model.name);
  if (sizes.empty()) text += "# Add the model's own arguments: its layers differ from each other.\n";
  const TrainingPlan plan = plan_for_megatron(question);
  text += connection_line(question, plan);
  text += fmt::format("torchrun --nnodes {} --nproc-per-node {} pretrain_gpt.py \\\n", launched_nodes(question),
                      launched_devices_of_a_node(question));
  if (!sizes.empty()) text += fmt::format("    {} \\\n", sizes);
  return text + fmt::format("    --seq-length {} --max-position-embeddings {} {} \\\n    {}{}{}{} \\\n    \"$@\"\n",
                            question.job.sequence_length,
                            std::max(question.job.model.max_positions, question.job.sequence_length),
                            megatron_precision(question.job.recipe.name), megatron_flags(plan, question.job.dropout),
                            overlap_flags(question, plan), offload_flags(question), gradient_flag(question));
}

}  // namespace

TrainingLauncher megatron_lm_launcher() {
  return {.name = "megatron-lm",
          .summary = "a script of Megatron-LM's pretrain_gpt.py",
          .refusal = megatron_refusal,
          .write = megatron_script,
          .host_memory = megatron_host_memory,
          .dispatcher = TokenDispatcher::all_to_all};
}

}  // namespace foretoken
