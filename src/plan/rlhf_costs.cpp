#include "plan/rlhf_costs.h"

#include <algorithm>
#include <cmath>

namespace foretoken {

ModelCost model_cost(const IterationEstimate& iteration, const TrainingPlan& plan, int64_t sequence_length,
                     StepBound bound) {
  double forward = 0;
  for (const ChunkTimes& chunk : iteration.pipeline.chunks) forward += chunk.forward;
  const auto devices_of_stage = static_cast<double>(plan.parallel.tensor * plan.parallel.context);
  const auto tokens = static_cast<double>(plan.micro_batch * sequence_length);
  const double at = at_bound(iteration.seconds, bound) / iteration.seconds.value;
  return {.forward_device_seconds = at * forward * devices_of_stage / tokens,
          .training_device_seconds = at / iteration.tokens_per_second_per_device};
}

RolloutEngine rollout_engine(StepTimes& steps, const RolloutRequest& request, StepBound bound) {
  const auto context = static_cast<int64_t>(std::ceil(request.context_tokens));
  const auto decode_seconds = [&](int64_t sequences) {
    return at_bound(steps.step_seconds({.decodes = sequences,
                                        .decode_context_tokens = sequences * context,
                                        .longest_decode_context = context,
                                        .prompts = {}}),
                    bound);
  };
  RolloutEngine engine{.devices = request.devices, .most_sequences = request.most_sequences};
  const double one = decode_seconds(1);
  if (request.most_sequences > 1) {
    const double most = decode_seconds(request.most_sequences);
    engine.sequence_seconds = std::max(0.0, (most - one) / static_cast<double>(request.most_sequences - 1));
  }
  engine.step_seconds = one - engine.sequence_seconds;
  const PromptChunk prompt{.new_tokens = std::max<int64_t>(1, std::llround(request.prompt_tokens))};
  engine.prompt_token_seconds =
      at_bound(steps.step_seconds({.prompts = {&prompt, 1}}), bound) / static_cast<double>(prompt.new_tokens);
  return engine;
}

}  // namespace foretoken
