#include "compose/computing_memory.h"

#include <gtest/gtest.h>

#include "compose/step_estimate.h"
#include "hardware/catalogue.h"
#include "model/catalogue.h"

namespace foretoken::computing_memory_test {

// Attention in proportion to the keys and values it reads.
class StreamingMemory final : public DescribedKernels {
 public:
  explicit StreamingMemory(double bytes_per_second) : bytes_per_second_(bytes_per_second) {}
  Time time(const KernelShape& shape) const override {
    const double seconds = count_work(shape).bytes().value() / bytes_per_second_;
    return {.seconds = {.value = seconds, .low = seconds, .high = seconds, .kind = Confidence::extrapolated},
            .mapped = true};
  }

 private:
  double bytes_per_second_;
};

Device gpu() {
  return HardwareCatalogue(FORETOKEN_SOURCE_DIR "/data/hardware").device("a100_sxm");
}

KernelPredictor with_memory(double bytes_per_second, bool beside) {
  Device device = gpu();
  device.computing_memory = ComputingMemory{.design = "{}", .beside = beside, .source = "test"};
  return KernelPredictor(device).with_computing_memory(std::make_shared<StreamingMemory>(bytes_per_second));
}

StepEstimate decode(const KernelPredictor& predictor, int64_t batch = 64) {
  const Model model = ModelCatalogue(FORETOKEN_SOURCE_DIR "/data/models").model("Llama-2-7b");
  return estimate_step(model, {.phase = StepPhase::decode, .batch = batch, .context_len = 2048}, {}, predictor);
}

TEST(ComputingMemory, halves_take_the_longer_of_memory_and_device_and_one_turn_to_start) {
  EXPECT_DOUBLE_EQ(seconds_beside_memory(3, 1, 10), 6.1);
  EXPECT_DOUBLE_EQ(seconds_beside_memory(1, 3, 10), 6.1);
  EXPECT_DOUBLE_EQ(seconds_beside_memory(2, 2, 1), 6);  // one layer has nothing beside it
}

TEST(ComputingMemory, runs_the_attention_of_decodes_and_nothing_else) {
  const KernelPredictor predictor = with_memory(1e13, false);
  AttentionShape shape{.phase = AttentionPhase::decode, .batch = 8, .heads = 32, .kv_heads = 32};
  shape.kv_len = 4096;
  const KernelEstimate in_memory = predictor.estimate(shape);
  EXPECT_EQ(in_memory.tier, Tier::mapped);
  EXPECT_LT(in_memory.seconds.value, in_memory.memory.value());  // faster than its way out of the memory
  shape.phase = AttentionPhase::prefill;
  shape.q_len = 4096;
  EXPECT_EQ(predictor.estimate(shape).seconds.value, KernelPredictor(gpu()).estimate(shape).seconds.value);
  const GemmShape product{.m = 8, .n = 4096, .k = 4096};
  EXPECT_EQ(predictor.estimate(product).seconds.value, KernelPredictor(gpu()).estimate(product).seconds.value);
}

TEST(ComputingMemory, decodes_beside_prompts_are_the_memorys_part_of_a_mixed_step) {
  MixedAttentionShape both{.heads = 32, .kv_heads = 32};
  both.add_prompts(1, 512, 512);
  const double prompts = with_memory(1e13, false).estimate(simplest_shape(both)).seconds.value;
  both.add_decodes(32, 2048);
  const double all = with_memory(1e13, false).estimate(both).seconds.value;
  const double decodes = with_memory(1e13, false).estimate(decodes_of(both)).seconds.value;
  EXPECT_NEAR(all, prompts + decodes, 1e-9);
  EXPECT_LT(all, KernelPredictor(gpu()).estimate(both).seconds.value);
}

TEST(ComputingMemory, a_step_is_faster_with_it_and_faster_still_where_both_work_at_once) {
  const double alone = decode(KernelPredictor(gpu())).seconds.value;
  const StepEstimate blocked = decode(with_memory(1e13, false));
  const StepEstimate beside = decode(with_memory(1e13, true));
  EXPECT_LT(blocked.seconds.value, 0.7 * alone);
  EXPECT_LE(beside.seconds.value, blocked.seconds.value);
  EXPECT_EQ(blocked.stages.front().time.hidden_attention, 0);
}

TEST(ComputingMemory, a_batch_is_cut_in_two_only_where_that_pays) {
  // As slow as the rest of the step, attention hides behind it; much faster, nothing is worth a second read of all
  // weights.
  const StepEstimate even = decode(with_memory(4e12, true), 256);
  EXPECT_GT(even.stages.front().time.hidden_attention, 0);
  EXPECT_LT(even.seconds.value, decode(with_memory(4e12, false), 256).seconds.value);
  const StepEstimate quick = decode(with_memory(1e15, true), 8);
  EXPECT_EQ(quick.stages.front().time.hidden_attention, 0);
  EXPECT_EQ(quick.seconds.value, decode(with_memory(1e15, false), 8).seconds.value);
}

TEST(ComputingMemory, gaps_that_measured_kernels_hold_count_once_in_both_halves) {
  const Model model = ModelCatalogue(FORETOKEN_SOURCE_DIR "/data/models").model("Llama-2-7b");
  const auto time = [&](double gap) {
    Stack stack;
    stack.costs.kernel_gap = Seconds(gap);
    const StepRequest request{.phase = StepPhase::decode, .batch = 256, .context_len = 2048};
    return estimate_step(model, request, {}, with_memory(4e12, true), stack).stages.front().time;
  };
  const DispatchTime without = time(0), with = time(6e-7);
  EXPECT_GT(without.hidden_attention, 0);
  EXPECT_GT(with.launch_gap, without.launch_gap);
  EXPECT_NEAR(with.seconds, without.seconds, 1e-9);
}

}  // namespace foretoken::computing_memory_test
