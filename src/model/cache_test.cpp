#include <algorithm>

#include <gtest/gtest.h>

#include "model/catalogue.h"
#include "model/weights.h"

namespace foretoken::cache_test {

Model model(const char* name) {
  return ModelCatalogue(FORETOKEN_SOURCE_DIR "/data/models").model(name);
}

double per_token(const char* name, DType type = DType::bf16) {
  return kv_bytes_per_token(model(name), type).value();
}

TEST(Cache, keys_and_values_per_token_are_exact) {
  EXPECT_EQ(per_token("Llama-2-7b-hf"), 32 * 2 * 32 * 128 * 2);  // layers x K,V x heads x size x bytes = 524288
  EXPECT_EQ(per_token("Llama-2-70b-hf"), 327680);
  EXPECT_EQ(per_token("Llama-3.1-8B"), 131072);
  EXPECT_EQ(per_token("Llama-3.1-70B"), 327680);
  EXPECT_EQ(per_token("Llama-3.1-70B", DType::fp8), 163840);
  EXPECT_EQ(per_token("Llama-3.2-1B"), 16 * 2 * 8 * 64 * 2);
}

TEST(Cache, latent_attention_keeps_one_latent_for_all_heads) {
  EXPECT_EQ(per_token("DeepSeek-V3"), 61 * 576 * 2);  // 70272
  EXPECT_EQ(per_token("DeepSeek-V2-Lite"), 27 * 576 * 2);
}

// vLLM and SGLang keep 128 B and a scale of 4 B, whatever the latent is kept in.
TEST(Cache, keys_of_an_indexer_are_kept_in_fp8_with_a_scale) {
  EXPECT_EQ(per_token("DeepSeek-V3.2"), 61 * (576 * 2 + 132));
}

// 512 values, 4 scales in fp32 and 64 rotary ones in 16 bits: vLLM's fp8_ds_mla.
TEST(Cache, latents_of_sparse_attention_in_fp8_keep_scales_and_a_16_bit_rotary_part) {
  EXPECT_EQ(per_token("DeepSeek-V3.2", DType::fp8), 61 * (656 + 132));
  EXPECT_EQ(per_token("DeepSeek-V3", DType::fp8), 61 * 576);
}

TEST(Cache, windows_stop_growing) {
  const Model gemma = model("gemma-3-27b-it");  // 62 layers, every sixth full: 10 full, 52 with a window of 1024
  const double layer_token = 2 * 16 * 128 * 2;
  EXPECT_EQ(kv_bytes_per_token(gemma, DType::bf16).value(), 62 * layer_token);
  EXPECT_EQ(cache_bytes(gemma, 1000, DType::bf16).value(), 62 * 1000 * layer_token);
  EXPECT_EQ(cache_bytes(gemma, 8192, DType::bf16).value(), (10 * 8192 + 52 * 1024) * layer_token);
}

TEST(Cache, the_parts_of_all_layers_are_the_cache_of_the_model) {
  const ModelCatalogue catalogue(FORETOKEN_SOURCE_DIR "/data/models");
  for (const std::string& name : catalogue.names()) {
    const Model one = catalogue.model(name);
    for (const int64_t context : {0, 1, 1000, 300'000}) {
      double sum = 0;
      for (const Layer& layer : one.layers) {
        for (const CachePart& part : layer_cache(one, layer, one.kv_cache_dtype())) {
          const int64_t held = part.window > 0 ? std::min(context, part.window) : context;
          sum += part.per_token.value() * static_cast<double>(held) + part.state.value();
        }
      }
      EXPECT_DOUBLE_EQ(sum, cache_bytes(one, context, one.kv_cache_dtype()).value()) << name << " after " << context;
    }
  }
}

TEST(Cache, gpt_oss_alternates_a_window_of_128_with_full_attention) {
  const double layer_token = 2 * 8 * 64 * 2;
  EXPECT_EQ(per_token("gpt-oss-20b"), 24 * layer_token);   // 49152
  EXPECT_EQ(per_token("gpt-oss-120b"), 36 * layer_token);  // 73728
  EXPECT_EQ(cache_bytes(model("gpt-oss-20b"), 4096, DType::bf16).value(), 12 * (4096 + 128) * layer_token);
  EXPECT_EQ(cache_bytes(model("gpt-oss-120b"), 4096, DType::bf16).value(), 18 * (4096 + 128) * layer_token);
}

TEST(Cache, llama_4_keeps_a_chunk_on_three_layers_of_four) {
  const double layer_token = 2 * 8 * 128 * 2;
  EXPECT_EQ(cache_bytes(model("Llama-4-Scout-17B-16E-Instruct"), 100'000, DType::bf16).value(),
            (36.0 * 8192 + 12.0 * 100'000) * layer_token);
}

TEST(Cache, gemma_4_full_layers_have_their_own_heads) {
  const Model gemma = model("gemma-4-26B-A4B");  // 25 window layers of 8 x 256, 5 full ones of 2 x 512
  EXPECT_EQ(kv_bytes_per_token(gemma, DType::bf16).value(), (25 * 2 * 8 * 256 + 5 * 2 * 2 * 512) * 2);
}

// DeepSeek quotes 9.62 GiB for a million tokens in bf16 (V4-Pro).
TEST(Cache, compressed_attention_takes_what_its_publisher_says) {
  const Model pro = model("DeepSeek-V4-Pro");
  const double bytes = (cache_bytes(pro, 1 << 20, DType::bf16) - state_bytes(pro)).value();
  EXPECT_NEAR(bytes / gibi, 9.62, 0.02);
}

// 448 values in fp8, 64 rotary ones in 16 bits, 8 bytes of scales; index keys as in DeepSeek-V3.2.
TEST(Cache, engines_keep_584_bytes_of_each_compressed_key) {
  const Model flash = model("DeepSeek-V4-Flash");
  EXPECT_EQ(flash.kv_cache_dtype(), DType::fp8);
  for (const Layer& layer : flash.layers) {
    const auto& attention = std::get<CompressedAttention>(layer.mixer);
    for (const CachePart& part : layer_cache(flash, layer, DType::fp8)) {
      if (part.window > 0) {
        EXPECT_EQ(part.per_token.value(), 584);
      } else if (part.per_token.value() > 0) {
        EXPECT_EQ(part.per_token.value(),
                  (584.0 + (attention.indexer ? 132 : 0)) / static_cast<double>(attention.ratio));
      }
    }
  }
}

TEST(Cache, recurrent_layers_have_a_state_and_no_growth) {
  const Model qwen = model("Qwen3.5-27B");  // 64 layers, 16 of them attention
  EXPECT_EQ(kv_bytes_per_token(qwen, DType::bf16).value(), 16 * 2 * 4 * 256 * 2);
  const double recurrent = 48.0 * 128 * 128 * 4;                   // fp32, per layer
  const double convolution = (2.0 * 16 * 128 + 48 * 128) * 3 * 2;  // three past inputs in bf16
  EXPECT_EQ(state_bytes(qwen).value(), 48 * (recurrent + convolution));
  EXPECT_EQ(cache_bytes(qwen, 0, DType::bf16).value(), state_bytes(qwen).value());

  const Model nemotron = model("Nemotron-H-56B-Base-8K");  // 54 Mamba-2 layers, 10 attention, 54 MLP
  EXPECT_EQ(kv_bytes_per_token(nemotron, DType::bf16).value(), 10 * 2 * 8 * 128 * 2);
  EXPECT_EQ(state_bytes(nemotron).value(), 54 * (256.0 * 64 * 256 * 4 + (256.0 * 64 + 2 * 8 * 256) * 3 * 2));

  EXPECT_EQ(state_bytes(model("MiniMax-Text-01")).value(), 70 * 64.0 * 128 * 128 * 4);
  EXPECT_EQ(state_bytes(model("Llama-3.1-8B")).value(), 0);
}

TEST(Cache, an_encoder_keeps_nothing_and_an_encoder_decoder_keeps_the_encoders_output) {
  EXPECT_EQ(cache_bytes(model("bert-base-uncased"), 512, DType::bf16).value(), 0);
  const Model t5 = model("switch-xl-4");
  EXPECT_EQ(kv_bytes_per_token(t5, DType::bf16).value(), 24 * 2 * 32 * 128 * 2);
  EXPECT_EQ(cross_cache_bytes(t5, 100, DType::bf16).value(), 100 * kv_bytes_per_token(t5, DType::bf16).value());
  EXPECT_EQ(cross_cache_bytes(model("Llama-3.1-8B"), 100, DType::bf16).value(), 0);
}

TEST(Cache, more_context_never_takes_less_and_never_more_than_the_first_token_did) {
  const ModelCatalogue catalogue(FORETOKEN_SOURCE_DIR "/data/models");
  for (const std::string& name : catalogue.names()) {
    const Model any = catalogue.model(name);
    const double state = state_bytes(any).value();
    const double first = kv_bytes_per_token(any, DType::bf16).value();
    double before = state;
    for (int64_t context = 1; context < 3'000'000; context *= 7) {
      const double bytes = cache_bytes(any, context, DType::bf16).value();
      EXPECT_GE(bytes, before) << name;
      EXPECT_LE(bytes, (state + static_cast<double>(context) * first) * (1 + 1e-12)) << name;
      before = bytes;
    }
  }
}

}  // namespace foretoken::cache_test
