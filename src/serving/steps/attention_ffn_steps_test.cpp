#include "serving/steps/attention_ffn_steps.h"

#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "base/random.h"
#include "compose/step_estimate.h"
#include "hardware/catalogue.h"
#include "kernel/learned.h"
#include "model/catalogue.h"

namespace foretoken::attention_ffn_steps_test {

const std::filesystem::path data = FORETOKEN_SOURCE_DIR "/data";

DeviceModels models_of(const char* name) {
  const Device device = HardwareCatalogue(data / "hardware").device(name);
  return {KernelPredictor(device, {}, std::make_shared<LearnedKernels>(device, data / "kernels" / "calibrations")),
          nullptr};
}

ComposedStepsConfig attention_on(const char* device, const char* model) {
  return {.model = ModelCatalogue(data / "models").model(model),
          .models = models_of(device),
          .stack = StackCatalogue(data / "stacks").stack("vllm")};
}

FfnPool free_transfers(const char* device, int64_t devices, int64_t micro_batches) {
  const double infinite = std::numeric_limits<double>::infinity();
  return {.models = models_of(device),
          .devices = devices,
          .micro_batches = micro_batches,
          .attention_port = BytesPerSecond(infinite),
          .ffn_port = BytesPerSecond(infinite)};
}

StepBatch decodes(int64_t count, int64_t context) {
  return {.decodes = count, .decode_context_tokens = count * context, .longest_decode_context = context};
}

TEST(PingPong, one_micro_batch_goes_through_all_stages_one_after_the_other) {
  const PingPongStages stages{.attention = 3, .ffn = 2, .dispatch = 0.5, .combine = 0.25};
  EXPECT_DOUBLE_EQ(ping_pong_seconds(stages, 1, 10), 57.5);
}

TEST(PingPong, enough_micro_batches_hide_the_transfers_as_the_paper_says) {
  const double compute = 2, transfer = 0.9;
  const auto hiding = static_cast<int64_t>(std::ceil(2 * (1 + transfer / compute)));
  const int64_t layers = 48;
  EXPECT_EQ(hiding, 3);
  const PingPongStages stages{.attention = compute, .ffn = compute, .dispatch = transfer, .combine = transfer};
  const double paper = 2 * compute + 2 * transfer + compute * static_cast<double>(hiding * layers - 1);
  EXPECT_NEAR(ping_pong_seconds(stages, hiding, layers), paper, 1e-9);
  // One fewer leaves devices idle: no longer the slowest stage alone.
  EXPECT_GT(ping_pong_seconds(stages, hiding - 1, layers), compute * static_cast<double>((hiding - 1) * layers) + 40);
}

TEST(PingPong, no_stage_is_ever_outrun_and_slower_stages_never_help) {
  RandomStream random(1, "stages");
  for (int i = 0; i < 2000; ++i) {
    PingPongStages stages{random.uniform(), random.uniform(), random.uniform(), random.uniform()};
    const auto micro_batches = 1 + static_cast<int64_t>(random.below(8)),
               layers = 1 + static_cast<int64_t>(random.below(80));
    const double time = ping_pong_seconds(stages, micro_batches, layers);
    const auto rounds = static_cast<double>(micro_batches * layers);
    for (const double stage : {stages.attention, stages.ffn, stages.dispatch, stages.combine}) {
      EXPECT_GE(time, rounds * stage * (1 - 1e-12));
    }
    EXPECT_GE(time, static_cast<double>(layers) * (stages.attention + stages.ffn + stages.dispatch + stages.combine) *
                        (1 - 1e-12));
    stages.ffn += random.uniform();
    EXPECT_GE(ping_pong_seconds(stages, micro_batches, layers), time);
  }
}

TEST(AttentionFfnSteps, free_transfers_and_one_micro_batch_give_the_parts_one_after_the_other) {
  for (const char* model : {"Llama-3.1-8B", "Qwen3-30B-A3B"}) {
    const ComposedStepsConfig whole = attention_on("h200_sxm", model);
    const auto together = compose_steps(whole);
    const auto apart = attention_ffn_steps(whole, free_transfers("h200_sxm", 1, 1));
    for (const int64_t count : {32, 256}) {
      const StepBatch batch = decodes(count, 2048);
      // Norms at the seam are not fused with what came before: the parts may take a little longer.
      EXPECT_NEAR(apart->step_seconds(batch).value / together->step_seconds(batch).value, 1, 0.05) << model << count;
    }
  }
}

TEST(AttentionFfnSteps, neither_side_is_outrun) {
  const ComposedStepsConfig whole = attention_on("h200_sxm", "Qwen3-30B-A3B");
  ComposedStepsConfig attention = whole;
  attention.model = attention_part(whole.model);
  const auto attention_alone = compose_steps(attention);
  for (const int64_t micro_batches : {1, 2, 3, 4}) {
    const auto apart = attention_ffn_steps(whole, free_transfers("h200_sxm", 4, micro_batches));
    const int64_t count = 256;
    const double attention_time = attention_alone->step_seconds(decodes(count / micro_batches, 4096)).value;
    EXPECT_GE(apart->step_seconds(decodes(count, 4096)).value,
              static_cast<double>(micro_batches) * attention_time * (1 - 1e-9));
  }
}

TEST(AttentionFfnSteps, narrower_ports_and_longer_latencies_never_help) {
  const ComposedStepsConfig whole = attention_on("h200_sxm", "Qwen3-30B-A3B");
  double before = 0;
  for (const double gb_s : {400.0, 50.0, 5.0}) {
    FfnPool pool = free_transfers("h200_sxm", 4, 3);
    pool.attention_port = pool.ffn_port = BytesPerSecond(gb_s * 1e9);
    pool.latency = Seconds(1e-3 / gb_s);
    const double time = attention_ffn_steps(whole, pool)->step_seconds(decodes(256, 2048)).value;
    EXPECT_GE(time, before);
    before = time;
  }
}

TEST(AttentionFfnSteps, the_parts_of_a_model_have_its_weights_between_them) {
  for (const char* name : {"Llama-3.1-8B", "Qwen3-30B-A3B", "DeepSeek-V3"}) {
    const Model model = ModelCatalogue(data / "models").model(name);
    const auto weights = [](const Model& part) {
      const StepRequest one{.phase = StepPhase::decode, .batch = 1, .context_len = 1};
      return rank_memory(part, one, {}, 0).weights.value();
    };
    const double whole = weights(model);
    EXPECT_NEAR((weights(attention_part(model)) + weights(ffn_part(model))) / whole, 1, 1e-4) << name;
    EXPECT_EQ(kv_bytes_per_token(attention_part(model), DType::bf16).value(),
              kv_bytes_per_token(model, DType::bf16).value());
    EXPECT_EQ(kv_bytes_per_token(ffn_part(model), DType::bf16).value(), 0);
  }
}

TEST(AttentionFfnSteps, a_token_goes_to_each_device_with_an_expert_of_it_once) {
  const Layer dense{.feed_forward = Mlp{.width = 100}}, one{.feed_forward = Moe{.experts = 8, .top_k = 1}};
  const Layer many{.feed_forward = Moe{.experts = 256, .top_k = 8}};
  EXPECT_EQ(token_copies(dense, 4), 4);
  EXPECT_NEAR(token_copies(one, 8), 1, 1e-12);
  EXPECT_NEAR(token_copies(many, 1), 1, 1e-12);
  EXPECT_LT(token_copies(many, 64), 8);
  EXPECT_GT(token_copies(many, 64), 7);
}

}  // namespace foretoken::attention_ffn_steps_test
