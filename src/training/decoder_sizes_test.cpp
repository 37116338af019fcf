#include "training/decoder_sizes.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "model/weights.h"

namespace foretoken::decoder_sizes_test {

TEST(DecoderSizes, parameters_are_those_that_are_published) {
  // Llama 3 8B (arXiv 2407.21783): 8.03 B. MPT-7B (llm-foundry's benchmarks): 6,658,859,008.
  const Model llama = decoder_model({.name = "llama",
                                     .layers = 32,
                                     .hidden = 4096,
                                     .heads = 32,
                                     .kv_heads = 8,
                                     .head_dim = 128,
                                     .ffn = 14336,
                                     .vocabulary = 128256,
                                     .positions = 8192});
  EXPECT_EQ(count_parameters(llama).total, 8'030'261'248);
  const Model mpt = decoder_model({.name = "mpt",
                                   .layers = 32,
                                   .hidden = 4096,
                                   .heads = 32,
                                   .kv_heads = 32,
                                   .head_dim = 128,
                                   .ffn = 4 * 4096,
                                   .vocabulary = 50368,
                                   .positions = 2048,
                                   .gated = false,
                                   .learned_positions = true,
                                   .tied_embeddings = true,
                                   .biases = true,
                                   .layer_norm = true});
  EXPECT_EQ(count_parameters(mpt).total, 6'658'859'008);
}

TEST(DecoderSizes, latent_attention_and_experts_are_deepseek_v3) {
  const Model model = decoder_model({.name = "DeepSeek-V3",
                                     .layers = 61,
                                     .hidden = 7168,
                                     .heads = 128,
                                     .kv_heads = 128,
                                     .head_dim = 128,
                                     .ffn = 18432,
                                     .vocabulary = 129280,
                                     .positions = 4096,
                                     .experts = 256,
                                     .top_k = 8,
                                     .expert_ffn = 2048,
                                     .shared_ffn = 2048,
                                     .dense_layers = 3,
                                     .latent_attention = true,
                                     .draft_layers = 1});
  EXPECT_NEAR(count_parameters(model).total / 671e9, 1, 0.001);
  EXPECT_NEAR(count_parameters(model).active / 37.6e9, 1, 0.01);
  EXPECT_GT(count_parameters(model).draft, 0);
}

TEST(DecoderSizes, impossible_sizes_are_named) {
  const auto complaint = [](const DecoderSizes& sizes) {
    try {
      decoder_model(sizes);
      return std::string("none");
    } catch (const InputError& error) {
      return error.problem().path;
    }
  };
  EXPECT_EQ(complaint({.name = "m", .layers = 0}), "layers");
  EXPECT_EQ(complaint({.name = "m", .heads = 4, .kv_heads = 3}), "KV heads");
  EXPECT_EQ(complaint({.name = "m", .ffn = 0}), "MLP width");
  EXPECT_EQ(complaint({.name = "m", .experts = 4, .top_k = 5}), "experts of a token");
  EXPECT_EQ(complaint({.name = "m", .dense_layers = 2}), "dense layers");
  EXPECT_EQ(complaint({.name = "m", .ffn = 0, .experts = 4}), "none");  // no layer has a dense MLP
}

}  // namespace foretoken::decoder_sizes_test
