#include "plan/rlhf_costs.h"

#include <gtest/gtest.h>

namespace foretoken::rlhf_costs_test {

// Steps whose time is a sum that a test can write down.
class StraightSteps : public StepTimes {
 public:
  Estimate step_seconds(const StepBatch& batch) override {
    double seconds =
        0.01 + 1e-4 * static_cast<double>(batch.decodes) + 1e-9 * static_cast<double>(batch.decode_context_tokens);
    for (const PromptChunk& chunk : batch.prompts) seconds += 1e-5 * static_cast<double>(chunk.new_tokens);
    return exactly(seconds);
  }
};

TEST(RlhfCosts, an_engine_is_the_line_through_steps_of_one_and_of_the_most_sequences) {
  StraightSteps steps;
  const RolloutEngine engine =
      rollout_engine(steps, {.devices = 2, .most_sequences = 64, .prompt_tokens = 500, .context_tokens = 1000});
  EXPECT_EQ(engine.devices, 2);
  EXPECT_EQ(engine.most_sequences, 64);
  EXPECT_NEAR(engine.sequence_seconds, 1e-4 + 1e-9 * 1000, 1e-12);
  EXPECT_NEAR(engine.step_seconds, 0.01, 1e-9);
  EXPECT_NEAR(engine.prompt_token_seconds, (0.01 + 500 * 1e-5) / 500, 1e-12);
}

TEST(RlhfCosts, an_engine_of_one_sequence_has_no_slope) {
  StraightSteps steps;
  EXPECT_EQ(rollout_engine(steps, {.most_sequences = 1}).sequence_seconds, 0);
}

TEST(RlhfCosts, a_token_costs_all_devices_and_its_forward_pass_those_of_each_stage) {
  IterationEstimate iteration{.seconds = {.value = 2, .low = 1, .high = 3}, .tokens_per_second_per_device = 400};
  iteration.pipeline.chunks = {{.forward = 0.1, .backward_input = 0.2}, {.forward = 0.3, .backward_input = 0.2}};
  const TrainingPlan plan{.parallel = {.tensor = 2, .pipeline = 2, .context = 2}, .micro_batch = 4};
  const ModelCost cost = model_cost(iteration, plan, 1000);
  EXPECT_DOUBLE_EQ(cost.training_device_seconds, 1.0 / 400);
  EXPECT_DOUBLE_EQ(cost.forward_device_seconds, 0.4 * 4 / 4000);
  const ModelCost most = model_cost(iteration, plan, 1000, StepBound::high);
  EXPECT_DOUBLE_EQ(most.training_device_seconds, 1.5 * cost.training_device_seconds);
  EXPECT_DOUBLE_EQ(most.forward_device_seconds, 1.5 * cost.forward_device_seconds);
}

}  // namespace foretoken::rlhf_costs_test
