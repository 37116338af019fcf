#include "serving/steps/step_communication.h"

#include <algorithm>
#include <variant>

#include "compose/timed_launch.h"
#include "hardware/generation.h"

namespace foretoken {
namespace {

// Of calls that all wait for the same links: errors go together.
void add(Estimate& sum, const Estimate& part) {
  sum.value += part.value;
  sum.low += part.low;
  sum.high += part.high;
  sum.kind = std::max(sum.kind, part.kind);
}

}  // namespace

const StepCommunication::Parts& StepCommunication::parts(int64_t tokens) {
  const auto found = parts_.find(tokens);
  if (found != parts_.end()) return found->second;
  const StepRequest request{
      .phase = StepPhase::decode, .batch = tokens, .context_len = 1, .kv_dtype = config_.kv_dtype};
  const LoweredStep step{.phase = request.phase,
                         .model = config_.model.family,
                         .generation = kernel_generation(config_.models.kernels.device()).title};
  Parts sums;
  for (int64_t stage = 0; stage < config_.plan.pipeline; ++stage) {
    const std::vector<Operator> calls = stage_operators(config_.model, request, config_.plan, stage);
    for (const Launch& launch : lower(config_.stack, calls, step)) {
      const auto* collective = std::get_if<CollectiveShape>(&launch.shape);
      if (collective == nullptr) continue;
      const Estimate one = step_collective_seconds(collective_of(launch, traveling_experts(calls), stage),
                                                   config_.models.kernels.device(), config_.models.collectives.get());
      const Estimate seconds = scaled(one, static_cast<double>(launch.count));
      const bool is_logits = calls[launch.call].name == "logits_all_gather";
      add(is_logits ? sums.logits : collective->axis == ParallelAxis::expert ? sums.exchange : sums.layers, seconds);
    }
  }
  return parts_.emplace(tokens, sums).first->second;
}

Estimate StepCommunication::seconds(const StepBatch& batch) {
  const auto padded = [&](int64_t tokens) { return config_.stack.padded_tokens(tokens).value_or(tokens); };
  Estimate sum = parts(padded(batch.new_tokens())).layers;
  // Ranks in lock step send the tokens of all of them, each the mean.
  const int64_t ranks = lock_step_ranks(config_.plan);
  const int64_t each =
      batch.tokens_of_all_ranks > 0 ? (batch.tokens_of_all_ranks + ranks - 1) / ranks : batch.new_tokens();
  add(sum, parts(padded(std::max<int64_t>(1, each))).exchange);
  if (const int64_t sampled = batch.sampled_tokens(); sampled > 0) add(sum, parts(sampled).logits);
  return sum;
}

}  // namespace foretoken
