#include "compose/step_estimate.h"

#include <gtest/gtest.h>

#include "hardware/catalogue.h"
#include "model/catalogue.h"

namespace foretoken {
namespace {

const Model& llama() {
  static const Model model = ModelCatalogue(FORETOKEN_SOURCE_DIR "/data/models").model("Llama-3.1-8B");
  return model;
}

KernelPredictor h100() {
  return KernelPredictor(HardwareCatalogue(FORETOKEN_SOURCE_DIR "/data/hardware").device("h100_sxm"));
}

StepEstimate decode(const ParallelPlan& plan, int64_t batch = 8) {
  return estimate_step(llama(), {.phase = StepPhase::decode, .batch = batch, .context_len = 1024}, plan, h100());
}

TEST(StepEstimate, a_stage_is_the_sum_of_its_operators) {
  const StepEstimate step = decode({});
  double sum = 0, high = 0;
  for (const TimedOperator& timed : step.stages.at(0).operators) {
    sum += timed.seconds.value;
    high += timed.seconds.high;
  }
  EXPECT_NEAR(step.seconds.value, sum, 1e-12);
  EXPECT_NEAR(step.seconds.high, high, 1e-12) << "kernel errors of one device go the same way";
}

TEST(StepEstimate, one_device_communicates_with_nobody) {
  const StepEstimate step = decode({});
  for (const TimedOperator& timed : step.stages.at(0).operators) {
    EXPECT_TRUE(timed.kernel.has_value()) << timed.call.name;
  }
}

TEST(StepEstimate, eight_devices_are_faster_than_one_but_not_eight_times) {
  const double one = decode({}).seconds.value, eight = decode({.tensor = 8}).seconds.value;
  EXPECT_LT(eight, one);
  EXPECT_GT(eight, one / 8);
}

TEST(StepEstimate, two_stages_hold_half_the_model_each_and_take_the_time_of_one) {
  const StepEstimate whole = decode({}), halves = decode({.pipeline = 2});
  ASSERT_EQ(halves.stages.size(), 2U);
  EXPECT_NEAR(halves.stages[0].memory.weights.value() / whole.stages[0].memory.weights.value(), 0.5, 0.05);
  EXPECT_NEAR(halves.seconds.value / whole.seconds.value, 1, 0.01);
}

TEST(StepEstimate, a_larger_batch_is_never_faster) {
  double before = 0;
  for (int64_t batch = 1; batch <= 512; batch *= 2) {
    const double seconds = decode({}, batch).seconds.value;
    EXPECT_GE(seconds, before) << batch;
    before = seconds;
  }
}

TEST(StepEstimate, a_training_step_counts_three_forwards) {
  const StepRequest prompt{.phase = StepPhase::prefill, .batch = 1, .input_len = 512};
  StepRequest sample = prompt;
  sample.phase = StepPhase::train;
  const StepEstimate forward = estimate_step(llama(), prompt, {}, h100()),
                     training = estimate_step(llama(), sample, {}, h100());
  // The head runs on every position in training and on the last one in inference.
  EXPECT_GT(training.model_flops.value(), 3 * forward.model_flops.value());
  EXPECT_LT(training.model_flops.value(), 3.5 * forward.model_flops.value());
  EXPECT_GT(training.stages[0].memory.gradients_and_optimizer.value(), 12 * 8e9);
  EXPECT_EQ(training.fits_in_memory, false);
}

TEST(StepEstimate, no_step_uses_more_than_the_peak) {
  for (const int64_t length : {128, 4096, 65536}) {
    const StepEstimate step =
        estimate_step(llama(), {.phase = StepPhase::prefill, .batch = 1, .input_len = length}, {}, h100());
    EXPECT_GT(step.model_flops_utilization, 0);
    EXPECT_LE(step.model_flops_utilization, 1);
  }
}

TEST(StepEstimate, adapters_leave_no_step_above_the_peak) {
  const StepRequest request{.phase = StepPhase::train, .batch = 4, .input_len = 4096, .lora = {.rank = 16}};
  const StepEstimate step = estimate_step(llama(), request, {}, h100());
  EXPECT_LE(step.model_flops_utilization, 1);
}

TEST(StepEstimate, replicas_add_tokens_but_no_time) {
  const StepEstimate one = decode({}), four = decode({.data = 4});
  EXPECT_EQ(four.tokens, 4 * one.tokens);
  EXPECT_DOUBLE_EQ(four.seconds.value, one.seconds.value);
}

// In a model the weights and the cache come from DRAM, whatever a benchmark finds in its L2.
TEST(StepEstimate, no_decode_reads_weights_and_cache_faster_than_memory_delivers) {
  const HardwareCatalogue hardware(FORETOKEN_SOURCE_DIR "/data/hardware");
  const ModelCatalogue models(FORETOKEN_SOURCE_DIR "/data/models");
  for (const char* name : {"l40s", "l4", "rtx_4090", "rtx_pro_6000_server", "h100_sxm", "b200_sxm", "a100_sxm"}) {
    const Device device = hardware.device(name);
    const KernelPredictor predictor(
        device, {}, std::make_shared<LearnedKernels>(device, FORETOKEN_SOURCE_DIR "/data/kernels/calibrations"));
    for (const char* model : {"Llama-3.1-8B", "Qwen3-30B-A3B", "DeepSeek-V2-Lite"}) {
      for (const int64_t batch : {1, 64}) {
        const StepRequest request{.phase = StepPhase::decode, .batch = batch, .context_len = 1024};
        const StepEstimate step = estimate_step(models.model(model), request, {}, predictor);
        for (const TimedOperator& timed : step.stages[0].operators) {
          const bool attends = timed.call.name == "attention";
          const Bytes cold = timed.work.weights_read + (attends ? timed.work.activations_read : Bytes(0));
          EXPECT_GE(timed.seconds.low * 1.000001, (cold / device.memory_bandwidth->value).value())
              << model << " on " << name << ": " << timed.call.name;
        }
      }
    }
  }
}

TEST(StepEstimate, tokens_are_what_the_step_takes_in) {
  EXPECT_EQ(decode({}).tokens, 8);
  const StepRequest mixed{.phase = StepPhase::mixed, .batch = 9, .input_len = 256, .context_len = 1024, .prompts = 1};
  EXPECT_EQ(estimate_step(llama(), mixed, {}, h100()).tokens, 256 + 8);
}

}  // namespace
}  // namespace foretoken
