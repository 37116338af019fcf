#include "model/part_memory.h"

#include <gtest/gtest.h>

#include "model/step_test_models.h"

namespace foretoken::part_memory_test {

using namespace step_test;

const StepRequest micro_batch{.phase = StepPhase::train, .batch = 2, .input_len = 128};

Model gpt_like() {
  Model model = base_model("gpt-like");
  const Layer layer{.mixer = Attention{.heads = 16, .kv_heads = 16, .head_dim = 64},
                    .feed_forward = Mlp{.width = 4096, .gated = false},
                    .layer_norm = true};
  model.layers.assign(4, layer);
  return model;
}

// arXiv 2205.05198, table 2: s b h (34 + 5 a s / h) and its forms with tensor and sequence parallelism.
TEST(PartMemory, of_a_gpt_layer_with_dropout_and_written_scores_is_the_papers) {
  const double sbh = 256.0 * 1024, scores = 5.0 * 16 * 128 / 1024;
  const SavedTensors saved{.hidden_masks = true, .score_masks = true, .flash_attention = false};
  const auto layer = [&](const ParallelPlan& plan) {
    return model_parts(gpt_like(), micro_batch, plan, saved).layers.front();
  };
  EXPECT_DOUBLE_EQ(layer({}).saved.value(), sbh * (34 + scores));
  EXPECT_DOUBLE_EQ(layer({}).scores.value(), sbh * scores);
  EXPECT_DOUBLE_EQ(layer({.tensor = 4}).saved.value(), sbh * (10 + 24.0 / 4 + scores / 4));
  EXPECT_DOUBLE_EQ(layer({.tensor = 4, .sequence = true}).saved.value(), sbh / 4 * (34 + scores));
  EXPECT_DOUBLE_EQ(layer({.tensor = 4}).input.value(), 2 * sbh);
  EXPECT_DOUBLE_EQ(layer({.tensor = 4, .sequence = true}).input.value(), 2 * sbh / 4);
}

TEST(PartMemory, without_dropout_keeps_the_softmax_alone_of_written_scores) {
  const ModelParts flash = model_parts(gpt_like(), micro_batch, {});
  const ModelParts written = model_parts(gpt_like(), micro_batch, {}, {.flash_attention = false});
  EXPECT_EQ(flash.layers.front().scores.value(), 0);
  EXPECT_DOUBLE_EQ(written.layers.front().scores.value(), 2.0 * 2 * 16 * 128 * 128);
  EXPECT_DOUBLE_EQ((written.layers.front().saved - flash.layers.front().saved).value(),
                   2.0 * 2 * 16 * 128 * 128 - 4.0 * 2 * 16 * 128);
}

// Two copies of each token go to experts; unfused software keeps each in fp32 too, and one more output of its gate.
TEST(PartMemory, of_software_without_fused_experts_grows_with_the_copies_of_tokens) {
  const Model model = mixtral_like();
  const Moe& experts = std::get<Moe>(model.layers.front().feed_forward);
  const auto saved = [&](const SavedBeside& beside) {
    return model_parts(model, {.phase = StepPhase::train, .batch = 2, .input_len = 128, .routing = Routing::balanced},
                       {}, {.beside = beside})
        .layers.front()
        .saved.value();
  };
  const double tokens = 256, copies = tokens * static_cast<double>(experts.top_k), fused = saved({});
  EXPECT_NEAR(saved({.routed = 4}) - fused, 4 * copies * static_cast<double>(model.hidden), 1);
  const double gated = copies * static_cast<double>(experts.width) + tokens * static_cast<double>(experts.shared_width);
  EXPECT_NEAR(saved({.gate = 2}) - fused, 2 * gated, 1);
}

TEST(PartMemory, of_all_parts_is_that_of_a_rank) {
  for (const Model& model : hand_made_models()) {
    for (const ParallelPlan& plan : {ParallelPlan{}, ParallelPlan{.tensor = 2}, ParallelPlan{.data = 4, .expert = 4}}) {
      if (!accepts(model, micro_batch, plan)) continue;
      const ModelParts parts = model_parts(model, micro_batch, plan);
      ASSERT_EQ(parts.layers.size(), model.layers.size());
      double parameters = 0, saved = 0;
      const auto add = [&](const PartMemory& part) {
        parameters += part.parameters + part.expert_parameters + part.adapter_parameters;
        saved += (part.saved + part.logits).value();
      };
      for (const PartMemory& layer : parts.layers) add(layer);
      for (const PartMemory& layer : parts.encoder_layers) add(layer);
      add(parts.embedding);
      add(parts.head);
      const RankMemory rank = rank_memory(model, micro_batch, plan, 0);
      EXPECT_NEAR(2 * parameters / rank.weights.value(), 1, 1e-12) << model.name;
      EXPECT_DOUBLE_EQ(saved, rank.activations.value()) << model.name;
    }
  }
}

TEST(PartMemory, works_on_the_inputs_and_outputs_of_the_widest_operator) {
  const ModelParts parts = model_parts(llama_like(), micro_batch, {});
  EXPECT_EQ(parts.layers.front().working.value(), 256.0 * 3 * 2816 * 2);  // the MLP's activation: two in, one out
  EXPECT_EQ(parts.head.working.value(), 256.0 * (1024 + 32000) * 2);
  EXPECT_LT(model_parts(llama_like(), micro_batch, {.tensor = 4}).layers.front().working, parts.layers.front().working);
}

TEST(PartMemory, of_adapters_is_counted_apart) {
  StepRequest tuned = micro_batch;
  tuned.lora = {.rank = 16, .on_mlp = false};
  const PartMemory plain = model_parts(llama_like(), micro_batch, {}).layers.front();
  const PartMemory layer = model_parts(llama_like(), tuned, {}).layers.front();
  EXPECT_EQ(layer.parameters, plain.parameters);
  EXPECT_EQ(plain.adapter_parameters, 0);
  EXPECT_EQ(layer.adapter_parameters, 16 * (3 * 1024 + 24 * 64) + 16 * (1024 + 1024));
}

}  // namespace foretoken::part_memory_test
