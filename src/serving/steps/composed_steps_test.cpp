#include "serving/steps/composed_steps.h"

#include <cmath>

#include <gtest/gtest.h>

#include "base/normal_distribution.h"
#include "base/random.h"
#include "compose/step_estimate.h"
#include "hardware/catalogue.h"
#include "kernel/learned.h"
#include "model/catalogue.h"

namespace foretoken::composed_steps_test {

const std::filesystem::path data = FORETOKEN_SOURCE_DIR "/data";

ComposedStepsConfig config(const char* model = "Llama-3.1-8B", const ParallelPlan& plan = {}) {
  const Device device = HardwareCatalogue(data / "hardware").device("h200_sxm");
  return {.model = ModelCatalogue(data / "models").model(model),
          .plan = plan,
          .models = {KernelPredictor(device, {},
                                     std::make_shared<LearnedKernels>(device, data / "kernels" / "calibrations")),
                     nullptr},
          .stack = StackCatalogue(data / "stacks").stack("vllm")};
}

StepBatch decodes(int64_t count, int64_t context) {
  return {.decodes = count, .decode_context_tokens = count * context, .longest_decode_context = context};
}

double composed(const ComposedStepsConfig& config, const StepRequest& request) {
  return estimate_step(config.model, request, config.plan, config.models.kernels, config.stack).seconds.value;
}

TEST(ComposedSteps, decodes_take_what_a_step_of_them_takes) {
  for (const char* model : {"Llama-3.1-8B", "gemma-2-2b", "DeepSeek-V2-Lite"}) {
    const ComposedStepsConfig setup = config(model);
    const auto times = compose_steps(setup);
    for (const int64_t count : {1, 5, 32, 100, 256}) {
      for (const int64_t context : {16, 128, 1024, 7168}) {  // nodes of the grid
        const double whole = composed(setup, {.phase = StepPhase::decode, .batch = count, .context_len = context});
        EXPECT_NEAR(times->step_seconds(decodes(count, context)).value / whole, 1, 0.002)
            << model << count << "x" << context;
      }
    }
  }
}

// All that a captured graph is padded for run its kernels, and differ in attention alone.
TEST(ComposedSteps, decodes_of_one_captured_graph_take_what_steps_of_them_take) {
  const ComposedStepsConfig setup = config();
  const auto times = compose_steps(setup);
  ASSERT_EQ(setup.stack.padded_tokens(65), setup.stack.padded_tokens(72));
  for (const int64_t count : {72, 65, 68}) {
    const double whole = composed(setup, {.phase = StepPhase::decode, .batch = count, .context_len = 1024});
    EXPECT_NEAR(times->step_seconds(decodes(count, 1024)).value / whole, 1, 0.002) << count;
  }
}

// Attention at a steady rate, in memory that computes.
class StreamedAttention final : public DescribedKernels {
 public:
  Time time(const KernelShape& shape) const override {
    const double seconds = count_work(shape).bytes().value() / 1e13;
    return {.seconds = {.value = seconds, .low = seconds, .high = seconds, .kind = Confidence::extrapolated}};
  }
};

TEST(ComposedSteps, decodes_beside_memory_that_computes_take_what_a_step_of_them_takes) {
  ComposedStepsConfig setup = config();
  Device device = setup.models.kernels.device();
  device.computing_memory = ComputingMemory{.design = "{}", .beside = true, .source = "test"};
  setup.models.kernels = KernelPredictor(device).with_computing_memory(std::make_shared<StreamedAttention>());
  const auto times = compose_steps(setup);
  bool cuts = false;
  for (const int64_t count : {2, 32, 256}) {
    for (const int64_t context : {128, 7168}) {  // nodes of the grid
      const StepRequest request{.phase = StepPhase::decode, .batch = count, .context_len = context};
      const StepEstimate whole = estimate_step(setup.model, request, setup.plan, setup.models.kernels, setup.stack);
      cuts |= whole.stages.front().time.hidden_attention > 0;
      EXPECT_NEAR(times->step_seconds(decodes(count, context)).value / whole.seconds.value, 1, 0.03)
          << count << "x" << context;
    }
  }
  EXPECT_TRUE(cuts);
}

TEST(ComposedSteps, beside_memory_the_collectives_of_both_halves_are_as_uncertain_as_their_constant) {
  ComposedStepsConfig setup = config("Llama-3.1-8B", {.tensor = 2});
  Device device = setup.models.kernels.device();
  device.computing_memory = ComputingMemory{.design = "{}", .beside = true, .source = "test"};
  setup.models.kernels = KernelPredictor(device).with_computing_memory(std::make_shared<StreamedAttention>());
  constexpr auto collectives = static_cast<size_t>(DeploymentConstant::collectives);
  setup.stack.posterior = ConstantPosterior{};
  setup.stack.posterior->step_sd = 0;
  setup.stack.posterior->covariance = {};
  setup.stack.posterior->covariance[collectives][collectives] = 1;
  const auto step = [&](int64_t batch) {
    return estimate_step(setup.model, {.phase = StepPhase::decode, .batch = batch, .context_len = 7168}, setup.plan,
                         setup.models.kernels, setup.stack);
  };
  const StepEstimate whole = step(256);
  ASSERT_GT(whole.stages.front().time.hidden_attention, 0);
  const Estimate seconds = compose_steps(setup)->step_seconds(decodes(256, 7168));
  double both = 0;  // collectives of the two halves
  for (const TimedLaunch& one : whole.stages.front().launches) both += one.kernel ? 0 : one.seconds.value;
  EXPECT_NEAR(std::log(seconds.high / seconds.value), normal_half_width_90 * both / seconds.value, 1e-6);
}

TEST(ComposedSteps, a_prompt_takes_what_a_step_of_it_takes) {
  const ComposedStepsConfig setup = config();
  const auto times = compose_steps(setup);
  for (const int64_t tokens : {512, 1024, 2048, 8192}) {
    const PromptChunk chunk{.new_tokens = tokens};
    const double whole = composed(setup, {.phase = StepPhase::prefill, .batch = 1, .input_len = tokens});
    EXPECT_NEAR(times->step_seconds({.prompts = {&chunk, 1}}).value / whole, 1, 0.01) << tokens;
  }
}

TEST(ComposedSteps, sparse_and_compressed_layers_read_the_keys_that_the_model_says) {
  for (const char* model : {"DeepSeek-V3.2", "DeepSeek-V4-Flash"}) {
    const ComposedStepsConfig setup = config(model, {.tensor = 8});
    const auto times = compose_steps(setup);
    for (const int64_t tokens : {1024, 8192}) {
      const PromptChunk chunk{.new_tokens = tokens};
      const double whole = composed(setup, {.phase = StepPhase::prefill, .batch = 1, .input_len = tokens});
      EXPECT_NEAR(times->step_seconds({.prompts = {&chunk, 1}}).value / whole, 1, 0.01) << model << tokens;
    }
    for (const int64_t context : {1024, 28672}) {
      const double whole = composed(setup, {.phase = StepPhase::decode, .batch = 32, .context_len = context});
      EXPECT_NEAR(times->step_seconds(decodes(32, context)).value / whole, 1, 0.002) << model << context;
    }
  }
}

TEST(ComposedSteps, a_mixed_step_takes_what_a_step_of_both_takes) {
  const ComposedStepsConfig setup = config();
  const auto times = compose_steps(setup);
  for (const int64_t tokens : {448, 1024, 1792}) {
    const PromptChunk chunk{.new_tokens = tokens};
    StepBatch batch = decodes(64, 1024);
    batch.prompts = {&chunk, 1};
    const StepRequest request{
        .phase = StepPhase::mixed, .batch = 65, .input_len = tokens, .context_len = 1024, .prompts = 1};
    EXPECT_NEAR(times->step_seconds(batch).value / composed(setup, request), 1, 0.03) << tokens;
  }
}

// Between the nodes of the grid: the same as a step of that context would be.
TEST(ComposedSteps, the_grid_is_close_between_its_nodes) {
  const ComposedStepsConfig setup = config();
  const auto times = compose_steps(setup);
  RandomStream random(2, "contexts");
  for (int i = 0; i < 40; ++i) {
    const auto count = static_cast<int64_t>(1 + random.below(256)),
               context = static_cast<int64_t>(50 + random.below(8000));
    const double whole = composed(setup, {.phase = StepPhase::decode, .batch = count, .context_len = context});
    EXPECT_NEAR(times->step_seconds(decodes(count, context)).value / whole, 1, 0.02) << count << "x" << context;
  }
}

TEST(ComposedSteps, more_work_never_takes_less_time) {
  const auto times = compose_steps(config());
  double last = 0;
  for (const int64_t context : {100, 1000, 4000, 16'000, 64'000}) {
    const double now = times->step_seconds(decodes(64, context)).value;
    EXPECT_GT(now, last);
    last = now;
  }
  last = 0;
  for (const int64_t tokens : {1000, 2000, 4000, 8000}) {
    const PromptChunk chunk{.new_tokens = tokens, .context_tokens = 500};
    const double now = times->step_seconds({.prompts = {&chunk, 1}}).value;
    EXPECT_GT(now, last);
    last = now;
  }
}

TEST(ComposedSteps, ranks_share_the_work) {
  const auto one = compose_steps(config("Llama-3.1-70B")), four = compose_steps(config("Llama-3.1-70B", {.tensor = 4}));
  EXPECT_LT(four->step_seconds(decodes(16, 1024)).value, one->step_seconds(decodes(16, 1024)).value);
}

TEST(ComposedSteps, two_batches_hide_what_travels_but_are_no_faster_than_either_alone) {
  ComposedStepsConfig apart =
      config("DeepSeek-V2-Lite", {.data = 8, .expert = 8, .exchange = ExpertExchange::all_to_all});
  const auto plain = compose_steps(apart);
  apart.two_batch_overlap = true;
  const auto overlapped = compose_steps(apart);
  const PromptChunk prompt{.new_tokens = 16'384}, half{.new_tokens = 8192};
  const double whole = plain->step_seconds({.prompts = {&prompt, 1}}).value;
  const double hidden = overlapped->step_seconds({.prompts = {&prompt, 1}}).value;
  EXPECT_LT(hidden, whole) << "large prompts have much to hide";
  EXPECT_GT(hidden, plain->step_seconds({.prompts = {&half, 1}}).value) << "two halves take longer than one";
  // Nothing travels within one rank.
  ComposedStepsConfig alone = config("DeepSeek-V2-Lite");
  const double one = compose_steps(alone)->step_seconds(decodes(64, 512)).value;
  alone.two_batch_overlap = true;
  EXPECT_EQ(compose_steps(alone)->step_seconds(decodes(64, 512)).value, one);
}

TEST(ComposedSteps, two_batches_take_what_a_step_of_two_batches_takes) {
  ComposedStepsConfig setup = config("DeepSeek-V3", {.data = 32, .expert = 32});
  setup.two_batch_overlap = true;
  setup.stack.costs.graph_gap = Seconds(10e-6);  // well beyond the tolerance, were they counted twice
  const auto times = compose_steps(setup);
  const auto stepped = [&](const StepRequest& request) {
    return estimate_step(setup.model, request, setup.plan, setup.models.kernels, setup.stack,
                         {.two_batch_overlap = true})
        .seconds.value;
  };
  for (const int64_t count : {128, 256}) {
    EXPECT_NEAR(times->step_seconds(decodes(count, 2048)).value /
                    stepped({.phase = StepPhase::decode, .batch = count, .context_len = 2048}),
                1, 0.02)
        << count;
  }
  const std::vector<PromptChunk> prompts(4, {.new_tokens = 2048, .yields_token = true});
  EXPECT_NEAR(times->step_seconds({.prompts = prompts}).value /
                  stepped({.phase = StepPhase::prefill, .batch = 4, .input_len = 2048}),
              1, 0.02);
}

TEST(ComposedSteps, the_interval_holds_the_value) {
  const Estimate step = compose_steps(config())->step_seconds(decodes(33, 777));
  EXPECT_LT(step.low, step.value);
  EXPECT_GT(step.high, step.value);
}

}  // namespace foretoken::composed_steps_test
