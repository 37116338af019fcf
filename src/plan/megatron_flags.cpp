#include "plan/megatron_flags.h"

#include <fmt/format.h>

#include <algorithm>

#include "training/layer_split.h"

namespace foretoken {
namespace {

// Megatron-FSDP stops at the start without its own format of checkpoints, and with fused gradient accumulation unless
// Transformer Engine is recent (megatron/training/arguments.py, mcore_fsdp_adapter.py).
std::string sharding_flags(Sharding sharding) {
  if (sharding == Sharding::none) return "";
  if (sharding == Sharding::optimizer) return " --use-distributed-optimizer";
  return fmt::format(
      " --use-megatron-fsdp --data-parallel-sharding-strategy {} --use-distributed-optimizer "
      "--ckpt-format fsdp_dtensor --no-gradient-accumulation-fusion",
      sharding == Sharding::gradients ? "optim_grads" : "optim_grads_params");
}

std::string selective_flags(const LayerModules& modules) {
  std::string flags = " --recompute-granularity selective";
  if (modules == LayerModules{LayerModule::core_attn}) return flags;
  flags += " --recompute-modules";
  for (size_t i = 0; i < layer_module_count; ++i) {
    const auto module = static_cast<LayerModule>(i);
    if (modules.has(module)) flags += fmt::format(" {}", layer_module_name(module));
  }
  return flags;
}

std::string recompute_flags(const TrainingPlan& plan) {
  if (plan.recompute == Recompute::none) return "";
  if (plan.recompute == Recompute::selective) return selective_flags(plan.recompute_modules);
  if (plan.recompute_layers == 0) {
    return " --recompute-granularity full --recompute-method uniform --recompute-num-layers 1";
  }
  return fmt::format(" --recompute-granularity full --recompute-method block --recompute-num-layers {}",
                     plan.recompute_layers);
}

std::string exchange_flags(const TrainingPlan& plan) {
  std::string flags;
  if (plan.parallel.context > 1) {
    flags += fmt::format(" --cp-comm-type {}", megatron_exchange_name(plan.context_exchange));
  }
  switch (plan.dispatcher) {
    case TokenDispatcher::usual:
      return flags;  // scripts of Megatron-LM name another (megatron_lm.cpp): its own default gathers all tokens
    case TokenDispatcher::all_to_all:
      return flags + " --moe-token-dispatcher-type alltoall";
    case TokenDispatcher::deepep:
    case TokenDispatcher::hybridep:
      break;
  }
  return flags + fmt::format(" --moe-token-dispatcher-type flex --moe-flex-dispatcher-backend {}",
                             token_dispatcher_name(plan.dispatcher));
}

}  // namespace

std::string megatron_flags(const TrainingPlan& plan) {
  const ParallelPlan& p = plan.parallel;
  std::string flags =
      fmt::format("--tensor-model-parallel-size {} --pipeline-model-parallel-size {}", p.tensor, p.pipeline);
  if (p.sequence && p.tensor > 1) flags += " --sequence-parallel";
  if (p.context > 1) flags += fmt::format(" --context-parallel-size {}", p.context);
  if (p.expert > 1) {
    flags += fmt::format(" --expert-model-parallel-size {} --expert-tensor-parallel-size {}", p.expert,
                         std::max<int64_t>(1, p.tensor / p.expert));
  }
  if (!plan.layout.empty()) {
    flags += fmt::format(" --pipeline-model-parallel-layout \"{}\"", pipeline_layout_text(plan.layout));
  }
  if (plan.virtual_stages > 1) {
    // A layout says the number of stages itself.
    if (plan.layout.empty()) flags += fmt::format(" --num-virtual-stages-per-pipeline-rank {}", plan.virtual_stages);
    const int64_t group = pipeline_work(plan).micro_batch_group;
    if (group != p.pipeline) flags += fmt::format(" --microbatch-group-size-per-virtual-pipeline-stage {}", group);
  }
  if (plan.embedding_in_split) flags += " --account-for-embedding-in-pipeline-split";
  if (plan.loss_in_split) flags += " --account-for-loss-in-pipeline-split";
  flags += exchange_flags(plan);
  flags += fmt::format(" --micro-batch-size {} --global-batch-size {}", plan.micro_batch, plan.global_batch);
  flags += sharding_flags(plan.sharding);
  if (plan.shard_ranks > 0) {
    flags += fmt::format(" --num-distributed-optimizer-instances {}", p.data * p.context / plan.shard_ranks);
  }
  return flags + recompute_flags(plan);
}

std::string_view megatron_exchange_name(ContextExchange exchange) {
  constexpr std::string_view names[] = {"p2p", "all_gather", "a2a"};
  return names[static_cast<size_t>(exchange)];
}

std::string_view dropout_rate(bool drops) {
  return drops ? "0.1" : "0.0";
}

std::string megatron_flags(const TrainingPlan& plan, const Dropout& dropout) {
  return fmt::format("{} --hidden-dropout {} --attention-dropout {}", megatron_flags(plan),
                     dropout_rate(dropout.hidden), dropout_rate(dropout.attention));
}

}  // namespace foretoken
