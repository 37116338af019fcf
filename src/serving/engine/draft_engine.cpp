#include "serving/engine/draft_engine.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "base/error.h"
#include "serving/speculation/speculative_steps.h"

namespace foretoken {

DraftEngine::DraftEngine(const SpeculativeConfig& config, const ComposedStepsConfig& target,
                         const std::optional<Model>& draft)
    : method_(config.method), speculation_(config.speculation()), kv_dtype_(target.kv_dtype), plan_(target.plan) {
  if (method_->network == nullptr) return;
  plan_.pipeline = 1;  // vLLM: the drafter is whole on the last stage
  if (config.draft_tensor_parallel_size > 0) plan_.tensor = config.draft_tensor_parallel_size;
  network_ = method_->network(target.model, draft);
  if (!network_->has_experts()) plan_.expert = 1;  // MiMo-V2 drafts with dense layers
  ComposedStepsConfig passes = target;
  passes.model = *network_;
  passes.plan = plan_;
  passes.stack.costs.step_host = Seconds(0);
  check_step(*network_, {}, plan_);
  passes_ = compose_steps(std::move(passes));
}

std::unique_ptr<StepTimes> DraftEngine::steps(StepTimes& target) {
  return speculative_steps(target, {.method = method_, .network = passes_.get(), .speculation = speculation_});
}

double DraftEngine::weight_bytes() const {
  if (!network_) return 0;
  Model held = *network_;
  if (method_->shares_embedding) {
    held.has_head = false;
    held.vocabulary = 1;
  }
  const double copies = method_->keeps_cache() ? 1 : static_cast<double>(speculation_.draft_tokens);
  return copies * rank_memory(held, {}, plan_, 0).weights.value();
}

double DraftEngine::cache_bytes_per_token() const {
  if (!network_ || !method_->keeps_cache()) return 0;
  double bytes = 0;
  for (const std::vector<CachePart>& layer : rank_cache(*network_, kv_dtype_, plan_, 0)) {
    for (const CachePart& part : layer) bytes += part.per_token.value();
  }
  return bytes;
}

Bytes DraftEngine::memory(int64_t sequences, int64_t tokens_each) const {
  return Bytes(weight_bytes() +
               cache_bytes_per_token() * static_cast<double>(sequences) * static_cast<double>(tokens_each));
}

SchedulerOptions DraftEngine::beside(const SchedulerOptions& options, ServingMemory& memory) const {
  SchedulerOptions result = options;
  result.speculation = speculation_;
  const EngineFlags& flags = memory.flags;
  if (flags.num_gpu_blocks_override == 0) {
    const double pool = memory.kv_pool.value - (flags.kv_cache_memory_bytes > 0 ? 0 : weight_bytes());
    const double block =
        memory.kv_pool.value / memory.blocks.value + cache_bytes_per_token() * static_cast<double>(options.block_size);
    result.num_gpu_blocks = static_cast<int64_t>(std::floor(std::max(0.0, pool / block)));
  }
  const int64_t needed = (flags.max_model_len + speculation_.slots()) / options.block_size + 2;
  if (result.num_gpu_blocks < needed) {
    const int64_t longest = (result.num_gpu_blocks - 2) * options.block_size - speculation_.slots();
    if (memory.shorten_context(longest)) {
      result.max_model_len = longest;
      return result;
    }
    throw InputError(
        {.source = "KV cache",
         .value = fmt::format("{} blocks left after the drafter", result.num_gpu_blocks),
         .expected = fmt::format("{} blocks, enough for one sequence of {{max_model_len}} with its drafts", needed)});
  }
  return result;
}

int64_t largest_batch_in_memory(const ComposedStepsConfig& target, const DraftEngine& drafter, int64_t context,
                                int64_t most) {
  const Device& device = target.models.kernels.device();
  if (!device.memory && !device.allocatable_memory) return most;
  const double available = allocatable_bytes(device).value;
  const auto fits = [&](int64_t batch) {
    const StepRequest request{
        .phase = StepPhase::decode, .batch = batch, .context_len = context, .kv_dtype = target.kv_dtype};
    const double drafts = drafter.memory(batch, context + drafter.speculation().slots()).value();
    for (int64_t stage = 0; stage < target.plan.pipeline; ++stage) {
      // vLLM: the drafter is whole on the last stage.
      const double beside = stage + 1 == target.plan.pipeline ? drafts : 0;
      if (rank_memory(target.model, request, target.plan, stage).total().value() + beside > available) return false;
    }
    return true;
  };
  int64_t fitting = 0, too_large = 1;
  for (; too_large <= most && fits(too_large); too_large *= 2) fitting = too_large;
  too_large = std::min(too_large, most + 1);
  while (too_large - fitting > 1) {
    const int64_t middle = fitting + (too_large - fitting) / 2;
    (fits(middle) ? fitting : too_large) = middle;
  }
  return fitting;
}

}  // namespace foretoken
