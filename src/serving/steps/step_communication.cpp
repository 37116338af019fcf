#include "serving/steps/step_communication.h"

#include <algorithm>
#include <array>
#include <variant>

#include "compose/lowering.h"
#include "network/calibration/stack_collectives.h"

namespace foretoken {
namespace {

// Of calls that all wait for the same links: errors go together.
void add(Estimate& sum, const Estimate& part) {
  sum.value += part.value;
  sum.low += part.low;
  sum.high += part.high;
  sum.kind = std::max(sum.kind, part.kind);
}

class StepsOverLink final : public StepTimes {
 public:
  StepsOverLink(std::unique_ptr<StepTimes> composed, const ComposedStepsConfig& config, const RingLink& link)
      : composed_(std::move(composed)), own_(config), given_(config, link) {}

  Estimate step_seconds(const StepBatch& batch) override {
    const Estimate step = composed_->step_seconds(batch), own = own_.seconds(batch), given = given_.seconds(batch);
    // Ends of the interval: of the rest of the step, with the link's.
    const double rest = std::max(0.0, step.value - own.value), share = rest / step.value;
    return {.value = rest + given.value,
            .low = share * step.low + given.low,
            .high = share * step.high + given.high,
            .kind = std::max(step.kind, given.kind)};
  }

 private:
  std::unique_ptr<StepTimes> composed_;
  StepCommunication own_, given_;
};

}  // namespace

const StepCommunication::Parts& StepCommunication::parts(int64_t tokens) {
  const auto found = parts_.find(tokens);
  if (found != parts_.end()) return found->second;
  const StepRequest request{
      .phase = StepPhase::decode, .batch = tokens, .context_len = 1, .kv_dtype = config_.kv_dtype};
  Parts sums;
  for (int64_t stage = 0; stage < config_.plan.pipeline; ++stage) {
    const std::vector<Operator> calls = stage_operators(config_.model, request, config_.plan, stage);
    for (const Launch& launch : lower(config_.stack, calls, request.phase, config_.model.family)) {
      const auto* collective = std::get_if<CollectiveShape>(&launch.shape);
      if (collective == nullptr) continue;
      const Estimate one = link_
                               ? ring_collective_seconds(*collective, *link_)
                               : stack_collective_seconds(*collective, launch.variant, config_.models.kernels.device(),
                                                          config_.models.collectives.get());
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

std::unique_ptr<StepTimes> steps_over_link(std::unique_ptr<StepTimes> composed, const ComposedStepsConfig& config,
                                           const RingLink& link) {
  return std::make_unique<StepsOverLink>(std::move(composed), config, link);
}

}  // namespace foretoken
