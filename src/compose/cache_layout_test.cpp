#include "compose/cache_layout.h"

#include <cmath>

#include <gtest/gtest.h>

#include "hardware/catalogue.h"
#include "model/catalogue.h"

namespace foretoken::cache_layout_test {

Model model(const char* name) {
  return ModelCatalogue(FORETOKEN_SOURCE_DIR "/data/models").model(name);
}

EngineFlags flags_for(const Model& model, const char* engine) {
  static const Device device = HardwareCatalogue(FORETOKEN_SOURCE_DIR "/data/hardware").device("h100_sxm");
  return resolved({.engine = engine}, model, device, {});
}

CacheLayout layout_of(const Model& model, const char* engine = "vllm", const ParallelPlan& plan = {}) {
  return cache_layout(model, flags_for(model, engine), plan, 0);
}

TEST(CacheLayout, equal_layers_are_one_group_of_16_tokens) {
  const CacheLayout layout = layout_of(model("Llama-3.1-8B"));
  ASSERT_EQ(layout.groups.size(), 1u);
  EXPECT_TRUE(layout.grows_evenly());
  EXPECT_EQ(layout.groups.front().layers, 32);
  EXPECT_EQ(layout.block_bytes.value(), 16 * 131072);
  EXPECT_EQ(layout_of(model("Llama-3.1-8B"), "trtllm").block_bytes.value(), 32 * 131072);
  EXPECT_EQ(layout_of(model("Llama-3.1-8B"), "sglang").block_bytes.value(), 131072);
}

TEST(CacheLayout, two_tensor_ranks_hold_half_a_block_each_but_a_latent_is_not_cut) {
  EXPECT_EQ(layout_of(model("Llama-3.1-8B"), "vllm", {.tensor = 2}).block_bytes.value(), 16 * 131072 / 2);
  const Model latent = model("DeepSeek-V2-Lite");
  EXPECT_EQ(layout_of(latent).block_bytes, layout_of(latent, "vllm", {.tensor = 2}).block_bytes);
}

TEST(CacheLayout, windows_share_the_pool_in_groups_as_large_as_the_rarer_kind) {
  const CacheLayout layout = layout_of(model("gemma-3-27b-it"));  // 10 full layers, 52 with a window of 1024
  ASSERT_EQ(layout.groups.size(), 7u);
  int64_t full = 0, window = 0;
  for (const CacheGroup& group : layout.groups) (group.window > 0 ? window : full) += group.layers;
  EXPECT_EQ(full, 10);
  EXPECT_EQ(window, 52);
  EXPECT_EQ(layout.block_bytes.value(), 10 * 16 * (2 * 16 * 128 * 2));
}

// vLLM 0.22 logged for Qwen3.5-4B (24 gated-delta layers, 8 full ones): attention blocks of 528 tokens, state pages
// padded by 0.76%, and 137.80 sequences of 1,024 tokens in 11.11 GiB.
TEST(CacheLayout, attention_blocks_grow_until_a_page_holds_a_state) {
  const Layer delta{.mixer = GatedDelta{.key_heads = 16, .value_heads = 32, .key_dim = 128, .value_dim = 128},
                    .feed_forward = Mlp{.width = 9216}};
  const Layer full{.mixer = Attention{.heads = 16, .kv_heads = 4, .head_dim = 256}, .feed_forward = Mlp{.width = 9216}};
  Model hybrid{.name = "hybrid", .hidden = 2560, .vocabulary = 248320, .max_positions = 1024};
  for (int period = 0; period < 8; ++period) hybrid.layers.insert(hybrid.layers.end(), {delta, delta, delta, full});
  const CacheLayout layout = layout_of(hybrid);
  ASSERT_EQ(layout.groups.size(), 4u);
  EXPECT_EQ(layout.block_tokens, 528);
  const double page = layout.block_bytes.value() / 8;
  EXPECT_NEAR(page / (state_bytes(hybrid).value() / 24), 1.0076, 1e-4);
  const double blocks = std::floor(11.11 * gibi / layout.block_bytes.value());
  const double sequences = blocks * layout.block_bytes.value() / sequence_bytes(layout, 1024, 8192).value();
  EXPECT_NEAR(sequences, 137.80, 0.1);
}

TEST(CacheLayout, every_model_of_the_library_has_room_for_what_it_keeps) {
  const ModelCatalogue catalogue(FORETOKEN_SOURCE_DIR "/data/models");
  int checked = 0;
  for (const std::string& name : catalogue.names()) {
    const Model one = catalogue.model(name);
    for (const char* engine : {"vllm", "sglang", "trtllm"}) {
      const CacheLayout layout = layout_of(one, engine);
      for (const int64_t tokens : {1, 100, 4096, 20000}) {
        const double kept = cache_bytes(one, tokens, DType::bf16).value();
        EXPECT_GE(sequence_bytes(layout, tokens, 1).value() * (1 + 1e-12), kept) << name << " " << engine;
      }
      if (layout.grows_evenly()) {
        EXPECT_NEAR(sequence_bytes(layout, 4096, 1).value() / cache_bytes(one, 4096, DType::bf16).value(), 1, 1e-12)
            << name << ": whole blocks waste nothing";
      }
      ++checked;
    }
  }
  EXPECT_GT(checked, 300);
}

TEST(CacheLayout, a_sequence_past_its_window_holds_no_more_blocks) {
  const CacheGroup window{.block_tokens = 16, .window = 128};
  EXPECT_EQ(sequence_blocks(window, 64, 1), 4);
  EXPECT_EQ(sequence_blocks(window, 100'000, 1), 9);
  EXPECT_EQ(sequence_blocks(window, 100'000, 2048), 137) << "a chunk of a prompt is kept whole until it is computed";
}

}  // namespace foretoken::cache_layout_test
