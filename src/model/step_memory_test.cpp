#include <gtest/gtest.h>

#include "model/step.h"
#include "model/step_test_models.h"

namespace foretoken::step_memory_test {

using namespace step_test;

double weight_bytes(const Model& model, int64_t replicas_of_uncut) {
  double sum = 0;
  const auto add = [&](const std::vector<Weight>& weights) {
    for (const Weight& weight : weights) {
      // Experts cut by width all end in the same outputs, so each rank holds that bias whole.
      const bool whole = weight.cut == Cut::none || weight.name == "experts_down_bias";
      const double times = whole ? static_cast<double>(replicas_of_uncut) : 1;
      sum += weight.parameters() * times * weight.bytes_each();
    }
  };
  add(embedding_weights(model));
  add(head_weights(model));
  for (const auto* stack : {&model.encoder_layers, &model.layers}) {
    for (const Layer& layer : *stack) add(layer_weights(model, layer));
  }
  return sum;
}

bool replicates_heads(const Model& model, int64_t ranks) {
  for (const Layer& layer : model.layers) {
    if (const auto* a = std::get_if<Attention>(&layer.mixer)) {
      if (ranks > a->kv_heads || (a->indexer && ranks > a->indexer->heads)) return true;
    }
    if (const auto* m = std::get_if<Mamba2>(&layer.mixer); m != nullptr && ranks > m->groups) return true;
  }
  return false;
}

TEST(StepMemory, the_ranks_together_hold_the_model_and_copies_of_what_is_not_cut) {
  const StepRequest request{.phase = StepPhase::prefill, .batch = 1, .input_len = 16};
  int checked = 0;
  std::vector<Model> models = hand_made_models();
  for (Model& model : catalogue_models()) models.push_back(std::move(model));
  for (const Model& model : models) {
    for (const int64_t ranks : {1, 2, 4, 8}) {
      const ParallelPlan plan{.tensor = ranks};
      const bool even_vocabulary = model.vocabulary % ranks == 0;
      if (!even_vocabulary || replicates_heads(model, ranks) || !accepts(model, request, plan)) continue;
      const double held = rank_memory(model, request, plan, 0).weights.value() * static_cast<double>(ranks);
      EXPECT_NEAR(held / weight_bytes(model, ranks), 1, 1e-12) << model.name << " on " << ranks;
      ++checked;
    }
  }
  EXPECT_GT(checked, 200);
}

TEST(StepMemory, the_stages_together_hold_the_model) {
  const StepRequest request{.phase = StepPhase::decode, .batch = 4, .context_len = 100};
  for (const Model& model : {llama_like(), mixtral_like(), deepseek_like(), hybrid_like()}) {
    double weights = 0, cache = 0;
    for (int64_t stage = 0; stage < 4; ++stage) {
      const RankMemory memory = rank_memory(model, request, {.pipeline = 4}, stage);
      weights += memory.weights.value();
      cache += memory.kv_cache.value();
    }
    EXPECT_DOUBLE_EQ(weights, weight_bytes(model, 1)) << model.name;
    EXPECT_DOUBLE_EQ(cache, 4 * cache_bytes(model, 101, DType::bf16).value()) << model.name;
  }
}

TEST(StepMemory, experts_over_data_ranks_are_held_once_by_the_group) {
  const StepRequest request{.phase = StepPhase::decode, .batch = 4, .context_len = 100};
  const Model model = mixtral_like();
  const double alone = rank_memory(model, request, {}, 0).weights.value();
  const double spread = rank_memory(model, request, {.data = 8, .expert = 8}, 0).weights.value();
  EXPECT_DOUBLE_EQ(alone - spread, 6.0 * 7 * 3 * 1024 * 1536 * 2);
}

TEST(StepMemory, the_cache_follows_the_heads_and_the_latent_is_not_cut) {
  const StepRequest request{.phase = StepPhase::decode, .batch = 3, .context_len = 999, .kv_dtype = DType::fp8};
  const double whole = rank_memory(llama_like(), request, {}, 0).kv_cache.value();
  EXPECT_DOUBLE_EQ(whole, 3 * cache_bytes(llama_like(), 1000, DType::fp8).value());
  EXPECT_DOUBLE_EQ(rank_memory(llama_like(), request, {.tensor = 4}, 0).kv_cache.value(), whole / 4);
  EXPECT_DOUBLE_EQ(rank_memory(llama_like(), request, {.tensor = 16}, 0).kv_cache.value(), whole / 4);
  EXPECT_DOUBLE_EQ(rank_memory(llama_like(), request, {.context = 2}, 0).kv_cache.value(), whole / 2);
  EXPECT_DOUBLE_EQ(rank_memory(deepseek_like(), request, {.tensor = 4}, 0).kv_cache.value(),
                   rank_memory(deepseek_like(), request, {}, 0).kv_cache.value());
}

TEST(StepMemory, an_encoder_keeps_no_cache_and_a_decoder_that_of_both_attentions) {
  const StepRequest prefill{.phase = StepPhase::prefill, .batch = 2, .input_len = 50};
  EXPECT_EQ(rank_memory(bert_like(), prefill, {}, 0).kv_cache.value(), 0);
  const StepRequest decode{.phase = StepPhase::decode, .batch = 2, .input_len = 50, .context_len = 9};
  EXPECT_DOUBLE_EQ(
      rank_memory(t5_like(), decode, {}, 0).kv_cache.value(),
      2 * (cache_bytes(t5_like(), 10, DType::bf16) + cross_cache_bytes(t5_like(), 50, DType::bf16)).value());
}

// Per token and layer 8 h + 4 a d + 4 k d + 6 f bytes and 4 a for the softmax sums: training without dropout, flash
// attention, 2-byte activations. (Korthikanti et al., arXiv 2205.05198, section 4, less what the GELU MLP and dropout
// add)
TEST(StepMemory, a_dense_layer_saves_the_activations_of_the_textbook) {
  const StepRequest request{.phase = StepPhase::train, .batch = 2, .input_len = 128};
  const double h = 1024, queries = 16 * 64, keys = 4 * 64, f = 2816, heads = 16, layers = 10, vocabulary = 32000;
  const auto expected = [&](double tensor, double stream_cut) {
    const double layer = 8 * h / stream_cut + (4 * queries + 4 * keys + 6 * f + 4 * heads) / tensor;
    const double ends =
        8 + 2 * h / stream_cut + 2 * h / stream_cut + 4 * vocabulary / tensor;  // tokens, norm, head, logits
    return 256 * (layers * layer + ends);
  };
  EXPECT_DOUBLE_EQ(rank_memory(llama_like(), request, {}, 0).activations.value(), expected(1, 1));
  EXPECT_DOUBLE_EQ(rank_memory(llama_like(), request, {.tensor = 4}, 0).activations.value(), expected(4, 1));
  EXPECT_DOUBLE_EQ(rank_memory(llama_like(), request, {.tensor = 4, .sequence = true}, 0).activations.value(),
                   expected(4, 4));
}

TEST(StepMemory, recomputation_saves_the_input_of_each_layer_and_one_layer_in_full) {
  StepRequest request{.phase = StepPhase::train, .batch = 2, .input_len = 128};
  const double all = rank_memory(llama_like(), request, {}, 0).activations.value();
  request.recompute = true;
  const double ends = 256 * (8 + 4 * 1024 + 4 * 32000.0);
  const double one_layer = (all - ends) / 10;
  EXPECT_DOUBLE_EQ(rank_memory(llama_like(), request, {}, 0).activations.value(),
                   ends + one_layer + 10 * 2.0 * 256 * 1024);
}

TEST(StepMemory, training_holds_16_bytes_per_parameter_and_an_adapter_only_its_own) {
  StepRequest request{.phase = StepPhase::train, .batch = 1, .input_len = 8};
  const RankMemory memory = rank_memory(llama_like(), request, {}, 0);
  EXPECT_DOUBLE_EQ((memory.weights + memory.gradients_and_optimizer).value(),
                   16 * count_parameters(llama_like()).total);
  EXPECT_EQ(memory.kv_cache.value(), 0);
  request.lora = {.rank = 16, .on_mlp = false};
  const double adapters = 10 * (16 * (3 * 1024 + 24 * 64) + 16 * (1024 + 1024));
  const RankMemory tuned = rank_memory(llama_like(), request, {}, 0);
  EXPECT_DOUBLE_EQ(tuned.gradients_and_optimizer.value(), 14 * adapters);
  EXPECT_DOUBLE_EQ(tuned.weights.value(), 2 * (count_parameters(llama_like()).total + adapters));
  EXPECT_LT(tuned.activations.value(), memory.activations.value());
}

TEST(StepMemory, a_longer_prompt_needs_more_working_memory) {
  StepRequest request{.phase = StepPhase::prefill, .batch = 1, .input_len = 512};
  for (const Model& model : hand_made_models()) {
    const double before = rank_memory(model, request, {}, 0).activations.value();
    StepRequest longer = request;
    longer.input_len = 4096;
    EXPECT_GT(rank_memory(model, longer, {}, 0).activations.value(), before) << model.name;
  }
}

}  // namespace foretoken::step_memory_test
