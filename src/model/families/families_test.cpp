// What the readers make of this year's configurations (data/models).
#include "model/family.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "model/catalogue.h"
#include "model/model_config.h"
#include "model/step.h"
#include "model/weights.h"

namespace foretoken::families_test {

const ModelCatalogue& catalogue() {
  static const ModelCatalogue all(FORETOKEN_SOURCE_DIR "/data/models");
  return all;
}

template <class Mixer>
int64_t layers_with(const Model& model) {
  int64_t count = 0;
  for (const Layer& layer : model.layers) count += std::holds_alternative<Mixer>(layer.mixer) ? 1 : 0;
  return count;
}

const Moe& experts_of(const Layer& layer) {
  return std::get<Moe>(layer.feed_forward);
}

// Parameter totals of the checkpoints, to the last one: they pin every projection and norm.
TEST(Families, counts_are_exact_where_the_checkpoint_is_known) {
  const Model ling = catalogue().model("inclusionAI/Ling-3.0-flash");
  const ParameterCount count = count_parameters(ling);
  EXPECT_NEAR(count.total + count.draft, 127'486'405'600, 20'000);  // norms of the draft layer are counted apart
  // The checkpoint has a draft layer that its config does not count.
  const ParameterCount next = count_parameters(catalogue().model("Qwen/Qwen3-Next-80B-A3B-Instruct"));
  EXPECT_NEAR(next.total + next.draft, 81'324'862'720, 20'000);
  EXPECT_NEAR(count_parameters(catalogue().model("LiquidAI/LFM2.5-1.2B-Instruct")).total, 1'170'340'608, 1000);
}

TEST(Families, minimax_m1_has_the_layers_of_minimax_text_01) {
  const char* type = "minimax_m1";
  EXPECT_EQ(find_family(type), find_family("minimax_text_01"));
  EXPECT_EQ(find_family("MiniMaxM1ForCausalLM"), find_family(type));
  const Model model = parse_model_config(
      R"({"model_type": "minimax_m1", "hidden_size": 64, "intermediate_size": 32, "num_hidden_layers": 4,
          "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 16, "vocab_size": 100,
          "num_local_experts": 4, "num_experts_per_tok": 2, "attn_type_list": [0, 0, 0, 1]})",
      "config.json", "test");
  EXPECT_EQ(layers_with<Lightning>(model), 3);
  EXPECT_EQ(layers_with<Attention>(model), 1);
}

TEST(Families, ling_has_five_kda_layers_then_a_latent_one_with_a_gate_for_each_head) {
  const Model model = catalogue().model("inclusionAI/Ling-3.0-flash");
  EXPECT_EQ(layers_with<GatedDelta>(model), 35);
  EXPECT_EQ(layers_with<LatentAttention>(model), 7);
  EXPECT_TRUE(std::get<LatentAttention>(model.layers[5].mixer).head_gate);
  EXPECT_TRUE(std::get<GatedDelta>(model.layers[0].mixer).full_rank_decay);
  EXPECT_TRUE(std::holds_alternative<Mlp>(model.layers[1].feed_forward));
  EXPECT_EQ(experts_of(model.layers[2]).experts, 512);
  EXPECT_EQ(model.draft_layers.size(), 1u);
}

TEST(Families, lfm2_convolves_in_ten_layers_and_its_mlp_is_two_thirds_as_wide) {
  const Model model = catalogue().model("LiquidAI/LFM2.5-1.2B-Instruct");
  EXPECT_EQ(layers_with<ShortConvolution>(model), 10);
  EXPECT_EQ(layers_with<Attention>(model), 6);
  EXPECT_EQ(std::get<Mlp>(model.layers[0].feed_forward).width, 8192);
  // The last two inputs of each channel, and nothing that grows with the context.
  const std::vector<CachePart> parts = layer_cache(model, model.layers[0], DType::bf16);
  ASSERT_EQ(parts.size(), 1u);
  EXPECT_EQ(parts[0].state.value(), 2 * 2048 * 2);
}

TEST(Families, glm_52_chooses_keys_in_every_fourth_layer_only) {
  const Model model = catalogue().model("zai-org/GLM-5.2"), older = catalogue().model("zai-org/GLM-5");
  int64_t choosing = 0;
  for (const Layer& layer : model.layers) {
    const auto& attention = std::get<LatentAttention>(layer.mixer);
    ASSERT_TRUE(attention.indexer);
    choosing += attention.indexer->reused ? 0 : 1;
  }
  EXPECT_EQ(choosing, 3 + 18);
  EXPECT_LT(count_parameters(model).total, count_parameters(older).total);
  EXPECT_LT(kv_bytes_per_token(model, DType::bf16).value(), kv_bytes_per_token(older, DType::bf16).value());
}

TEST(Families, mimo_has_more_key_heads_in_its_windows_and_dense_drafts) {
  const Model model = catalogue().model("XiaomiMiMo/MiMo-V2.5");
  const auto& full = std::get<Attention>(model.layers[0].mixer);
  const auto& window = std::get<Attention>(model.layers[1].mixer);
  EXPECT_EQ(full.kv_heads, 4);
  EXPECT_EQ(full.window, 0);
  EXPECT_FALSE(full.sinks);
  EXPECT_EQ(window.kv_heads, 8);
  EXPECT_EQ(window.window, 128);
  EXPECT_TRUE(window.sinks);
  EXPECT_EQ(window.value_dim, 128);
  EXPECT_EQ(model.mixer_scheme(), Scheme::fp8_block);  // its output projections alone are left in bf16
  ASSERT_EQ(model.draft_layers.size(), 3u);
  EXPECT_TRUE(std::holds_alternative<Mlp>(model.draft_layers[0].feed_forward));
}

TEST(Families, laguna_gates_by_element_or_by_head) {
  const Model large = catalogue().model("poolside/Laguna-M.1");
  EXPECT_TRUE(std::get<Attention>(large.layers[0].mixer).output_gate);
  EXPECT_FALSE(std::get<Attention>(large.layers[0].mixer).head_gate);
  const Model small = catalogue().model("poolside/Laguna-XS.2");
  EXPECT_TRUE(std::get<Attention>(small.layers[0].mixer).head_gate);
  EXPECT_EQ(std::get<Attention>(small.layers[0].mixer).window, 0);
  EXPECT_EQ(std::get<Attention>(small.layers[1].mixer).window, 512);
}

TEST(Families, mobius_layers_share_four_banks_of_experts) {
  const Model model = catalogue().model("internlm/Intern-S2-Mobius");
  EXPECT_FALSE(experts_of(model.layers[3]).reuses_experts);
  EXPECT_TRUE(experts_of(model.layers[4]).reuses_experts);
  EXPECT_EQ(experts_of(model.layers[4]).experts, 2560);
  // As many experts as the 40 x 256 of the model it was made from.
  EXPECT_NEAR(count_parameters(model).total, count_parameters(catalogue().model("Qwen/Qwen3.5-35B-A3B")).total, 5e8);
  EXPECT_EQ(experts_of(model.draft_layers[0]).experts, 256);
}

TEST(Families, kimi_k25_is_published_with_four_bit_experts) {
  const Model model = catalogue().model("moonshotai/Kimi-K2.5");
  EXPECT_EQ(model.expert_scheme, Scheme::int4_wo);
  EXPECT_EQ(model.scheme, Scheme::bf16);
  EXPECT_EQ(catalogue().model("moonshotai/Kimi-K2-Instruct").expert_scheme, Scheme::fp8_block);
}

TEST(Families, deepseek_ocr_keeps_grouped_heads) {
  EXPECT_EQ(layers_with<Attention>(catalogue().model("deepseek-ai/DeepSeek-OCR")), 12);
}

TEST(Families, nemotron_layers_are_named_by_letters_or_words) {
  const std::string start =
      R"({"model_type": "nemotron_h", "hidden_size": 64, "num_attention_heads": 4, "vocab_size": 9,
      "intermediate_size": 32, "mamba_num_heads": 4, "mamba_head_dim": 16, "ssm_state_size": 8, "n_groups": 1, )";
  const auto read = [&](const std::string& rest) { return parse_model_config(start + rest + "}", "config.json", "x"); };
  EXPECT_EQ(read(R"("num_hidden_layers": 3, "hybrid_override_pattern": "M*-")").layers,
            read(R"("layers_block_type": ["mamba", "attention", "mlp"])").layers);
  EXPECT_THROW(read(R"("layers_block_type": ["mamba", "attn"])"), InputError);
  EXPECT_THROW(read(R"("num_hidden_layers": 4, "layers_block_type": ["mamba"])"), InputError);
}

TEST(Families, a_language_model_is_found_under_the_names_of_its_part) {
  for (const char* part : {"text_config", "language_config", "llm_config"}) {
    const Model model = parse_model_config(std::string(R"({"model_type": "some_vl", ")") + part +
                                               R"(": {"model_type": "llama", "hidden_size": 64, "intermediate_size": 8,
                                            "num_hidden_layers": 2, "num_attention_heads": 4, "vocab_size": 100}})",
                                           "config.json", "x");
    EXPECT_EQ(model.hidden, 64) << part;
  }
}

TEST(Families, starcoder_shares_one_key_head) {
  const auto attention = std::get<Attention>(catalogue().model("bigcode/starcoder").layers[0].mixer);
  EXPECT_EQ(attention.heads, 48);
  EXPECT_EQ(attention.kv_heads, 1);
  const auto read = [](const std::string& rest) {
    return parse_model_config(R"({"model_type": "gpt_bigcode", "n_embd": 64, "n_layer": 1, "n_head": 4,
                                  "n_positions": 32, "vocab_size": 9)" +
                                  rest + "}",
                              "config.json", "x");
  };
  EXPECT_EQ(std::get<Attention>(read(R"(, "multi_query": false)").layers[0].mixer).kv_heads, 4);
}

TEST(Families, mpt_counts_biases_and_positions_only_where_the_config_has_them) {
  const Model model = catalogue().model("mosaicml/mpt-7b");
  EXPECT_EQ(count_parameters(model).total, 6'649'286'656);  // as the checkpoint has
  EXPECT_EQ(model.position_rows, 0);
  const Model other = parse_model_config(R"({"model_type": "mpt", "d_model": 64, "n_heads": 4, "n_layers": 1,
      "max_seq_len": 128, "vocab_size": 9, "no_bias": false, "attn_config": {"alibi": false, "kv_n_heads": 2}})",
                                         "config.json", "x");
  EXPECT_EQ(other.position_rows, 128);
  EXPECT_TRUE(std::get<Attention>(other.layers[0].mixer).qkv_bias);
  EXPECT_EQ(std::get<Attention>(other.layers[0].mixer).kv_heads, 2);
}

TEST(Families, smollm3_has_no_positions_in_every_fourth_layer) {
  const Model model = catalogue().model("HuggingFaceTB/SmolLM3-3B");
  for (size_t i = 0; i < model.layers.size(); ++i) {
    EXPECT_EQ(std::get<Attention>(model.layers[i].mixer).rotary_dim, (i + 1) % 4 == 0 ? 0 : 128) << i;
  }
}

TEST(Families, nemotron_has_an_ungated_mlp_and_half_rotary_heads) {
  const Model model = catalogue().model("nvidia/Nemotron-4-340B-Base");
  EXPECT_FALSE(std::get<Mlp>(model.layers[0].feed_forward).gated);
  EXPECT_EQ(std::get<Attention>(model.layers[0].mixer).rotary_dim, 96);
}

TEST(Families, every_model_of_the_library_can_take_a_step) {
  for (const std::string& name : catalogue().names()) {
    const Model model = catalogue().model(name);
    EXPECT_FALSE(stage_operators(model, {.phase = StepPhase::prefill, .batch = 2, .input_len = 32}, {}, 0).empty())
        << name;
  }
}

}  // namespace foretoken::families_test
