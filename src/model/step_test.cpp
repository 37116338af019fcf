// What a step does on one device: the laws that tie operators to weights, FLOPs and cache.
#include "model/step.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "model/step_test_models.h"

namespace foretoken::step_test {

using namespace step_test;

// Matrices that no GEMM of a layer uses: lookups, convolutions, mixing kernels, and experts, which have their own
// kernel.
bool is_layer_gemm(const Weight& weight) {
  static const std::set<std::string> others{"conv",          "router_table",         "hyper_proj",
                                            "relative_bias", "compressor_positions", "indexer_compressor_positions"};
  return weight.inputs > 1 && weight.cut != Cut::experts && !others.contains(weight.name);
}

double layer_gemm_parameters(const Model& model) {
  double sum = 0;
  for (const Layer& layer : model.layers) {
    for (const Weight& weight : layer_weights(model, with_own_experts(layer))) {
      if (is_layer_gemm(weight)) sum += weight.parameters();
    }
  }
  return sum;
}

double active_expert_parameters(const Model& model) {
  double sum = 0;
  for (const Layer& layer : model.layers) {
    const Moe* moe = std::get_if<Moe>(&layer.feed_forward);
    if (moe == nullptr) continue;
    for (const Weight& weight : layer_weights(model, with_own_experts(layer))) {
      if (weight.cut == Cut::experts && weight.inputs > 1) {
        sum += weight.parameters() * static_cast<double>(moe->top_k) / static_cast<double>(moe->experts);
      }
    }
  }
  return sum;
}

bool in_layers(const Operator& one) {
  return one.part != StepPart::embedding && one.part != StepPart::head;
}

std::vector<Model> every_model() {
  std::vector<Model> models = hand_made_models();
  for (Model& model : catalogue_models()) models.push_back(std::move(model));
  return models;
}

TEST(Step, multiplies_take_two_flops_per_token_and_active_matrix_parameter) {
  const StepRequest request{.phase = StepPhase::prefill, .batch = 3, .input_len = 256};
  int checked = 0;
  for (const Model& model : every_model()) {
    if (!model.encoder_layers.empty()) continue;
    const std::vector<Operator> operators = stage_operators(model, request, {}, 0);
    const double gemm =
        flops_of(operators, [](const Operator& one) { return in_layers(one) && multiplies_weights(one); });
    EXPECT_NEAR(gemm / (2 * 768 * layer_gemm_parameters(model)), 1, 1e-12) << model.name;
    const double experts = flops_of(operators, is<MoeShape>);
    EXPECT_NEAR(experts, 2 * 768 * active_expert_parameters(model), 1e-9 * experts) << model.name;
    ++checked;
  }
  EXPECT_GT(checked, 100);
}

TEST(Step, an_encoder_decoder_multiplies_encoder_tokens_by_encoder_weights_and_decoder_tokens_by_the_others) {
  const Model model = t5_like();
  Model encoder = model;
  encoder.layers = model.encoder_layers;
  double cross_kv = 0;
  for (const Layer& layer : model.layers) {
    for (const Weight& weight : layer_weights(model, with_own_experts(layer))) {
      if (weight.name == "cross_kv_proj") cross_kv += weight.parameters();
    }
  }
  const std::vector<Operator> prefill =
      stage_operators(model, {.phase = StepPhase::prefill, .batch = 2, .input_len = 100}, {}, 0);
  const auto layers = [](const Operator& one) { return in_layers(one) && multiplies_weights(one); };
  EXPECT_DOUBLE_EQ(flops_of(prefill, layers), 2 * 200 * (layer_gemm_parameters(encoder) + cross_kv) +
                                                  2 * 2 * (layer_gemm_parameters(model) - cross_kv));
  const std::vector<Operator> decode =
      stage_operators(model, {.phase = StepPhase::decode, .batch = 2, .input_len = 100, .context_len = 7}, {}, 0);
  EXPECT_DOUBLE_EQ(flops_of(decode, layers), 2 * 2 * (layer_gemm_parameters(model) - cross_kv));
  EXPECT_EQ(std::get<AttentionShape>(find_operator(decode, "cross_attention")->shape).kv_len, 100);
  EXPECT_EQ(std::get<AttentionShape>(find_operator(decode, "attention")->shape).kv_len, 8);
}

TEST(Step, every_model_has_operators_for_every_phase_it_supports) {
  for (const Model& model : every_model()) {
    for (const StepPhase phase : {StepPhase::prefill, StepPhase::decode, StepPhase::mixed, StepPhase::train}) {
      const StepRequest request{.phase = phase, .batch = 4, .input_len = 128, .context_len = 64, .prompts = 1};
      if (model.is_encoder_only() && (phase == StepPhase::decode || phase == StepPhase::mixed)) {
        EXPECT_THROW(stage_operators(model, request, {}, 0), InputError) << model.name;
        continue;
      }
      const std::vector<Operator> operators = stage_operators(model, request, {}, 0);
      EXPECT_GE(operators.size(), 8u) << model.name;
      for (const Operator& one : operators) {
        EXPECT_GT(one.count, 0) << model.name << " " << one.name;
        EXPECT_FALSE(is<CollectiveShape>(one)) << model.name << " " << one.name;
        const Work work = count_work(one.shape);
        EXPECT_GT(work.bytes().value(), 0) << model.name << " " << one.name;
      }
      EXPECT_GT(model_flops(model, request).value(), 0) << model.name;
    }
  }
}

TEST(Step, a_capacity_limits_the_tokens_of_each_sequence_that_experts_work_on) {
  Model model = mixtral_like();  // 8 experts, two for each token
  const auto routed = [&](const StepRequest& request) {
    return std::get<MoeShape>(find_operator(stage_operators(model, request, {}, 0), "experts")->shape).tokens;
  };
  const StepRequest prefill{.phase = StepPhase::prefill, .batch = 3, .input_len = 100};
  EXPECT_EQ(routed(prefill), 300);
  for (Layer& layer : model.layers) std::get<Moe>(layer.feed_forward).capacity = 16;
  EXPECT_EQ(routed(prefill), 3 * 8 * 16 / 2);
  EXPECT_EQ(routed({.phase = StepPhase::prefill, .batch = 3, .input_len = 10}), 30);
  EXPECT_EQ(routed({.phase = StepPhase::decode, .batch = 500, .context_len = 10}), 500);
}

TEST(Step, without_logits_there_is_no_head_in_inference) {
  const Model model = llama_like();
  const auto has_head = [&](StepPhase phase, Logits logits) {
    const StepRequest request{.phase = phase, .batch = 2, .input_len = 64, .logits = logits};
    const std::vector<Operator> operators = stage_operators(model, request, {}, 0);
    return find_operator(operators, "lm_head") != nullptr;
  };
  EXPECT_FALSE(has_head(StepPhase::prefill, Logits::none));
  EXPECT_TRUE(has_head(StepPhase::prefill, Logits::last));
  EXPECT_TRUE(has_head(StepPhase::train, Logits::none));
}

TEST(Step, a_draft_layer_projects_hidden_state_and_embedding) {
  Model model = llama_like();
  const StepRequest request{.phase = StepPhase::decode, .batch = 7, .context_len = 100};
  EXPECT_EQ(find_operator(stage_operators(model, request, {}, 0), "draft_proj"), nullptr);
  model.layers.front().draft_projection = true;
  const std::vector<Operator> operators = stage_operators(model, request, {}, 0);
  const Operator* projection = find_operator(operators, "draft_proj");
  ASSERT_NE(projection, nullptr);
  EXPECT_EQ(projection->count, 1);
  const auto& shape = std::get<GemmShape>(projection->shape);
  EXPECT_EQ(shape.m, 7);
  EXPECT_EQ(shape.n, model.hidden);
  EXPECT_EQ(shape.k, 2 * model.hidden);
}

TEST(Step, layers_that_mix_no_tokens_are_no_encoder) {
  Model model = llama_like();
  for (Layer& layer : model.layers) layer.mixer = {};
  EXPECT_FALSE(model.is_encoder_only());
  model.layers.front().mixer = Attention{.causal = false};
  EXPECT_TRUE(model.is_encoder_only());
}

TEST(Step, equal_calls_are_one_entry) {
  for (const Model& model : every_model()) {
    const std::vector<Operator> operators =
        stage_operators(model, {.phase = StepPhase::train, .batch = 2, .input_len = 64}, {}, 0);
    for (size_t i = 0; i < operators.size(); ++i) {
      for (size_t j = i + 1; j < operators.size(); ++j) {
        const Operator &a = operators[i], &b = operators[j];
        EXPECT_FALSE(a.name == b.name && a.pass == b.pass && a.shape == b.shape) << model.name << " " << a.name;
      }
    }
  }
}

TEST(Step, a_decode_reads_the_whole_cache_once) {
  const int64_t batch = 3, context = 5000;
  int checked = 0;
  for (const Model& model : every_model()) {
    bool plain = !model.is_encoder_only() && model.encoder_layers.empty();
    for (const Layer& layer : model.layers) {
      const Attention* attention = std::get_if<Attention>(&layer.mixer);
      const LatentAttention* latent = std::get_if<LatentAttention>(&layer.mixer);
      plain = plain && ((attention != nullptr && !attention->indexer && !attention->reuses_kv) ||
                        (latent != nullptr && !latent->indexer));
    }
    if (!plain) continue;
    const DType kv = model.dtype;
    const StepRequest request{.phase = StepPhase::decode, .batch = batch, .context_len = context, .kv_dtype = kv};
    double read = 0;
    for (const Operator& one : stage_operators(model, request, {}, 0)) {
      if (!is_attention(one)) continue;
      double queries = 0;
      if (const auto* a = std::get_if<AttentionShape>(&one.shape))
        queries = static_cast<double>(a->heads * a->head_dim);
      if (const auto* a = std::get_if<LatentAttentionShape>(&one.shape)) {
        queries = static_cast<double>(a->heads * (a->latent_dim + a->rope_dim));
      }
      queries *= static_cast<double>(batch) * bytes_per_element(model.dtype);
      read += static_cast<double>(one.count) * (count_work(one.shape).activations_read.value() - queries);
    }
    EXPECT_NEAR(read / (static_cast<double>(batch) * cache_bytes(model, context + 1, kv).value()), 1, 1e-12)
        << model.name;
    ++checked;
  }
  EXPECT_GT(checked, 60);
}

TEST(Step, an_indexer_reads_each_key_once_for_all_of_its_heads) {
  int checked = 0;
  for (const Model& model : catalogue_models()) {
    const LatentAttention* latent = std::get_if<LatentAttention>(&model.layers.back().mixer);
    if (latent == nullptr || !latent->indexer || latent->indexer->reused) continue;
    const StepRequest request{.phase = StepPhase::decode, .batch = 4, .context_len = 99'999};
    const Work work = count_work(find_operator(stage_operators(model, request, {}, 0), "index_scores")->shape);
    const double keys = 4e5, width = static_cast<double>(latent->indexer->head_dim);
    EXPECT_NEAR(work.bytes().value() / (keys * width), 1, 0.01) << model.name << ": scores of heads stay on the chip";
    EXPECT_NEAR(work.flops.value() / (2 * keys * width * static_cast<double>(latent->indexer->heads)), 1, 1e-9);
    ++checked;
  }
  EXPECT_GT(checked, 1);
}

TEST(Step, a_mixed_step_is_one_multiply_over_all_tokens_and_one_attention_call) {
  const StepRequest request{.phase = StepPhase::mixed, .batch = 10, .input_len = 100, .context_len = 499, .prompts = 2};
  const std::vector<Operator> operators = stage_operators(llama_like(), request, {}, 0);
  EXPECT_EQ(std::get<GemmShape>(find_operator(operators, "qkv_proj")->shape).m, 208);
  EXPECT_EQ(std::get<GemmShape>(find_operator(operators, "lm_head")->shape).m, 10);
  std::vector<MixedAttentionShape> calls;
  for (const Operator& one : operators) {
    if (one.name == "attention") calls.push_back(std::get<MixedAttentionShape>(one.shape));
  }
  ASSERT_EQ(calls.size(), 1u);
  EXPECT_EQ(calls[0].prompt_count(), 2);
  EXPECT_EQ(calls[0].prompts[0].q_len, 100);
  EXPECT_EQ(calls[0].prompts[0].kv_len, 100);
  EXPECT_EQ(calls[0].decodes, 8);
  EXPECT_EQ(calls[0].decode_keys, 8 * 500);
  EXPECT_EQ(calls[0].longest_decode, 500);
}

TEST(Step, a_mixed_step_does_the_attention_work_of_a_prefill_and_a_decode) {
  for (const Model& model : hand_made_models()) {
    if (model.is_encoder_only()) continue;
    const auto attention = [&](StepRequest request) {
      Work sum;
      for (const Operator& one : stage_operators(model, request, {}, 0)) {
        if (one.name != "attention") continue;
        const Work work = count_work(one.shape);
        sum.flops += work.flops * static_cast<double>(one.count);
        sum.activations_read += work.activations_read * static_cast<double>(one.count);
        sum.written += work.written * static_cast<double>(one.count);
      }
      return sum;
    };
    const StepRequest both{.phase = StepPhase::mixed, .batch = 7, .input_len = 90, .context_len = 333, .prompts = 2};
    const Work mixed = attention(both);
    const Work prefill = attention({.phase = StepPhase::prefill, .batch = 2, .input_len = 90});
    const Work decode = attention({.phase = StepPhase::decode, .batch = 5, .context_len = 333});
    EXPECT_DOUBLE_EQ(mixed.flops.value(), (prefill.flops + decode.flops).value()) << model.name;
    EXPECT_DOUBLE_EQ(mixed.bytes().value(), (prefill.bytes() + decode.bytes()).value()) << model.name;

    StepRequest later_chunks = both;
    later_chunks.prompt_context_len = 500;
    const Work later = attention({.phase = StepPhase::prefill, .batch = 2, .input_len = 90, .context_len = 500});
    EXPECT_DOUBLE_EQ(attention(later_chunks).flops.value(), (later.flops + decode.flops).value()) << model.name;
  }
}

TEST(Step, a_mixed_step_without_prompts_is_a_decode_and_with_only_prompts_a_prefill) {
  for (const Model& model : hand_made_models()) {
    if (model.is_encoder_only()) continue;
    const auto same = [&](StepRequest a, StepRequest b) {
      const std::vector<Operator> left = stage_operators(model, a, {}, 0), right = stage_operators(model, b, {}, 0);
      ASSERT_EQ(left.size(), right.size()) << model.name;
      for (size_t i = 0; i < left.size(); ++i) {
        EXPECT_EQ(left[i].name, right[i].name);
        EXPECT_EQ(left[i].count, right[i].count);
        EXPECT_TRUE(left[i].shape == right[i].shape) << model.name << " " << left[i].name;
      }
    };
    StepRequest mixed{.phase = StepPhase::mixed, .batch = 6, .input_len = 40, .context_len = 300, .prompts = 0};
    StepRequest decode = mixed;
    decode.phase = StepPhase::decode;
    same(mixed, decode);
    mixed.prompts = 6;
    StepRequest prefill = mixed;
    prefill.phase = StepPhase::prefill;
    prefill.context_len = 0;
    same(mixed, prefill);
  }
}

TEST(Step, a_dense_prefill_has_the_flops_of_the_textbook) {
  const Model model = llama_like();
  const double s = 512, batch = 2, heads = 16, dim = 64, layers = 10;
  const double attention = batch * layers * 4 * heads * dim * s * (s + 1) / 2;
  const double parameters = layers * (1024.0 * (16 + 8) * 64 + 1024.0 * 1024 + 3.0 * 1024 * 2816);
  const double head = 2 * batch * 1024 * 32000;
  EXPECT_DOUBLE_EQ(model_flops(model, {.phase = StepPhase::prefill, .batch = 2, .input_len = 512}).value(),
                   attention + 2 * batch * s * parameters + head);
}

TEST(Step, history_makes_a_prompt_attend_more_and_multiply_the_same) {
  const StepRequest fresh{.phase = StepPhase::prefill, .batch = 1, .input_len = 256};
  StepRequest later = fresh;
  later.context_len = 1024;
  const auto before = stage_operators(llama_like(), fresh, {}, 0), after = stage_operators(llama_like(), later, {}, 0);
  EXPECT_EQ(flops_of(before, is<GemmShape>), flops_of(after, is<GemmShape>));
  // 256 queries, each 1024 keys more.
  EXPECT_DOUBLE_EQ(flops_of(after, is_attention) - flops_of(before, is_attention), 10.0 * 4 * 16 * 64 * 256 * 1024);
}

TEST(Step, norms_add_the_residual_except_before_the_first_block) {
  const auto operators = stage_operators(llama_like(), {.phase = StepPhase::decode, .context_len = 5}, {}, 0);
  int64_t adding = 0, not_adding = 0;
  for (const Operator& one : operators) {
    if (const auto* norm = std::get_if<NormShape>(&one.shape)) (norm->adds_residual ? adding : not_adding) += one.count;
  }
  EXPECT_EQ(adding, 20);
  EXPECT_EQ(not_adding, 1);
}

TEST(Step, attention_may_have_a_scheme_of_its_own) {
  Model model = with_scheme(llama_like(), Scheme::nvfp4);
  const double all = rank_memory(model, {}, {}, 0).weights.value();
  model.attention_scheme = Scheme::bf16;
  EXPECT_GT(rank_memory(model, {}, {}, 0).weights.value(), all);
  const auto operators = stage_operators(model, {}, {}, 0);
  EXPECT_EQ(std::get<GemmShape>(find_operator(operators, "qkv_proj")->shape).scheme, Scheme::bf16);
  EXPECT_EQ(std::get<GemmShape>(find_operator(operators, "gate_up_proj")->shape).scheme, Scheme::nvfp4);
  EXPECT_EQ(with_scheme(model, Scheme::fp8).mixer_scheme(), Scheme::fp8) << "a new scheme is that of all layers";
}

TEST(Step, quantized_layers_are_gemms_of_their_scheme_and_the_head_stays_plain) {
  const Model model = with_scheme(mixtral_like(), Scheme::fp8, Scheme::int4_wo);
  const auto operators = stage_operators(model, {.phase = StepPhase::decode, .context_len = 5}, {}, 0);
  EXPECT_EQ(std::get<GemmShape>(find_operator(operators, "qkv_proj")->shape).scheme, Scheme::fp8);
  EXPECT_EQ(std::get<GemmShape>(find_operator(operators, "router")->shape).scheme, Scheme::bf16);
  EXPECT_EQ(std::get<GemmShape>(find_operator(operators, "lm_head")->shape).scheme, Scheme::bf16);
  EXPECT_EQ(std::get<MoeShape>(find_operator(operators, "experts")->shape).scheme, Scheme::int4_wo);
  for (const Operator& one : operators) EXPECT_FALSE(is<QuantizeShape>(one));
  EXPECT_EQ(with_scheme(mixtral_like(), Scheme::fp8).expert_scheme, Scheme::fp8);
}

TEST(Step, latent_attention_expands_prompts_and_absorbs_decodes) {
  const auto prefill = stage_operators(deepseek_like(), {.phase = StepPhase::prefill, .input_len = 64}, {}, 0);
  EXPECT_EQ(calls_of(prefill, "kv_b_proj"), 5);
  EXPECT_EQ(find_operator(prefill, "kv_b_absorb_pre"), nullptr);
  const auto decode =
      stage_operators(deepseek_like(), {.phase = StepPhase::decode, .batch = 7, .context_len = 64}, {}, 0);
  EXPECT_EQ(find_operator(decode, "kv_b_proj"), nullptr);
  EXPECT_EQ(std::get<LatentProjectionShape>(find_operator(decode, "kv_b_absorb_pre")->shape).tokens, 7);
  EXPECT_EQ(std::get<LatentAttentionShape>(find_operator(decode, "attention")->shape).kv_len, 65);
}

TEST(Step, compressed_attention_multiplies_in_16_bits_whatever_its_cache_is_in) {
  Model model = llama_like();
  for (Layer& layer : model.layers) {
    layer.mixer = CompressedAttention{
        .heads = 16, .head_dim = 64, .rope_dim = 32, .query_rank = 64, .output_rank = 64, .window = 128};
  }
  const auto operators = stage_operators(
      model, {.phase = StepPhase::decode, .batch = 5, .context_len = 999, .kv_dtype = DType::fp8}, {}, 0);
  EXPECT_EQ(count_work(find_operator(operators, "attention")->shape).math, DType::bf16);
  EXPECT_EQ(std::get<KvWriteShape>(find_operator(operators, "kv_write")->shape).kv_dtype, DType::fp8);
}

TEST(Step, adapters_shrink_and_expand_beside_each_adapted_matrix) {
  StepRequest request{.phase = StepPhase::decode, .batch = 5, .context_len = 9};
  request.lora = {.rank = 16, .on_mlp = false};
  const auto operators = stage_operators(llama_like(), request, {}, 0);
  const GemmShape a = std::get<GemmShape>(find_operator(operators, "qkv_proj_lora_a")->shape);
  const GemmShape b = std::get<GemmShape>(find_operator(operators, "qkv_proj_lora_b")->shape);
  EXPECT_EQ(a.k, 1024);
  EXPECT_EQ(a.n, 3 * 16);
  EXPECT_EQ(b.n, 24 * 64);
  EXPECT_EQ(b.k, 16);
  EXPECT_EQ(find_operator(operators, "down_proj_lora_a"), nullptr);
  EXPECT_EQ(model_flops(llama_like(), request).value(),
            model_flops(llama_like(), {.phase = StepPhase::decode, .batch = 5, .context_len = 9}).value());
}

}  // namespace foretoken::step_test
