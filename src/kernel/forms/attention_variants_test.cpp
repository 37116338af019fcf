#include "kernel/forms/attention_variants.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "kernel/test_support.h"

namespace foretoken::attention_variants_test {

using namespace test_support;

TEST(AttentionVariants, names_are_unique_and_tiles_are_tiles) {
  std::set<std::string_view> names;
  for (const AttentionVariant& variant : attention_variants) {
    EXPECT_TRUE(names.insert(variant.name).second) << variant.name;
    std::vector<int> sides = {variant.encoder_rows, variant.encoder_keys, variant.encoder_padding};
    for (const std::span<const AttentionTile> tiles : {variant.tiles, variant.fp8_tiles}) {
      for (const AttentionTile& tile : tiles) sides.insert(sides.end(), {tile.rows, tile.keys});
      EXPECT_TRUE(std::is_sorted(tiles.begin(), tiles.end(),
                                 [](const AttentionTile& a, const AttentionTile& b) { return a.widest < b.widest; }));
      EXPECT_TRUE(tiles.empty() || tiles.back().widest == any_width) << variant.name << " has a tile for every head";
    }
    for (const int side : sides)
      EXPECT_TRUE(side >= 16 && side <= 256 && side % 16 == 0) << variant.name << " " << side;
  }
}

TEST(AttentionVariants, tiles_of_prompts_go_by_kernel_head_and_cache) {
  const auto tile = [](std::string_view name, int64_t head_dim, DType cache, int64_t q_len = 4096) {
    const AttentionShape shape{.head_dim = head_dim, .q_len = q_len, .kv_dtype = cache};
    const AttentionTile found = prefill_tile(shape, attention_variant(name, shape, traits_named("h100_sxm")), 1);
    return std::pair(found.rows, found.keys);
  };
  EXPECT_EQ(tile("fa2", 64, DType::bf16), std::pair(64, 256));
  EXPECT_EQ(tile("fa2", 128, DType::bf16), std::pair(64, 128));
  EXPECT_EQ(tile("fa2", 192, DType::bf16), std::pair(64, 64));
  EXPECT_EQ(tile("fa3", 64, DType::bf16), std::pair(192, 128));
  EXPECT_EQ(tile("fa3", 128, DType::fp8), std::pair(128, 160));
  EXPECT_EQ(tile("fa3", 256, DType::bf16), std::pair(128, 80));
  EXPECT_EQ(tile("fi_trtllmprefill", 128, DType::fp8), std::pair(256, 128));
  EXPECT_EQ(tile("fi_trtllmprefill", 256, DType::bf16), std::pair(128, 128));
  EXPECT_EQ(tile("fi_fiprefill", 128, DType::fp8), std::pair(128, 64));
  EXPECT_EQ(tile("fi_fiprefill", 128, DType::fp8, 40), std::pair(64, 128));
  EXPECT_EQ(tile("fi_fiprefill", 64, DType::fp8, 8), std::pair(16, 256));
  EXPECT_EQ(tile("fi_fiprefill", 256, DType::fp8), std::pair(64, 32));
}

TEST(AttentionVariants, a_name_decides_on_every_device) {
  for (const AttentionVariant& variant : attention_variants) {
    for (const char* device : {"a100_sxm", "h100_sxm", "b200_sxm", "rtx_4090"})
      EXPECT_EQ(&attention_variant(variant.name, AttentionShape{}, traits_named(device)), &variant);
  }
}

TEST(AttentionVariants, without_a_name_or_with_an_unknown_one_it_is_what_vllm_would_run) {
  const auto chosen = [](const char* device, const AttentionShape& shape) {
    const DeviceTraits traits = traits_named(device);
    const AttentionVariant& variant = attention_variant("", shape, traits);
    EXPECT_EQ(&attention_variant("kernel of tomorrow", shape, traits), &variant);
    return variant.name;
  };
  EXPECT_EQ(chosen("a100_sxm", {}), "fa2");
  EXPECT_EQ(chosen("h100_sxm", {}), "fa3");
  EXPECT_EQ(chosen("h100_sxm", {.head_dim = 512}), "fa4");
  EXPECT_EQ(chosen("b200_sxm", {}), "fi_trtllmprefill");
  EXPECT_EQ(chosen("b300_sxm", {.head_dim = 192}), "triton_attn");
  EXPECT_EQ(chosen("l40s", {.kv_dtype = DType::fp8}), "fi_fiprefill");
  EXPECT_EQ(chosen("l40s", {.head_dim = 192, .kv_dtype = DType::fp8}), "triton_attn");
  EXPECT_EQ(chosen("rtx_pro_6000_server", {}), "fa2");
  EXPECT_EQ(chosen("b200_sxm", {.phase = AttentionPhase::encoder}), "fa4");
  EXPECT_EQ(chosen("h200_sxm", {.phase = AttentionPhase::encoder}), "fa3");
  EXPECT_EQ(chosen("rtx_4090", {.phase = AttentionPhase::encoder}), "fa2");
}

TEST(AttentionVariants, the_kernels_of_tensorrt_llm_go_by_instruction_set_phase_and_cache) {
  const auto chosen = [](const char* device, const AttentionShape& shape) {
    return attention_variant("trtllm", shape, traits_named(device)).name;
  };
  EXPECT_EQ(chosen("a100_sxm", {}), "trtllm_sm80");
  EXPECT_EQ(chosen("l40s", {.kv_dtype = DType::fp8}), "trtllm_sm80");
  EXPECT_EQ(chosen("h100_sxm", {}), "trtllm_sm90");
  EXPECT_EQ(chosen("h100_sxm", {.phase = AttentionPhase::decode}), "trtllm_sm80");
  EXPECT_EQ(chosen("h100_sxm", {.phase = AttentionPhase::decode, .kv_dtype = DType::fp8}), "trtllm_sm90");
  EXPECT_EQ(chosen("b300_sxm", {.phase = AttentionPhase::decode}), "trtllm_sm100");
  EXPECT_EQ(attention_variant("flashinfer", {}, traits_named("b200_sxm")).kernel, "flashinfer");
}

TEST(AttentionVariants, the_multiply_is_in_fp8_only_where_cache_kernel_and_shape_agree) {
  const AttentionVariant &fa2 = attention_variants[0], &fa3 = attention_variants[3];
  ASSERT_EQ(fa2.name, "fa2");
  ASSERT_EQ(fa3.name, "fa3");
  EXPECT_TRUE(multiplies_in_fp8({.kv_dtype = DType::fp8}, fa3));
  EXPECT_FALSE(multiplies_in_fp8({.kv_dtype = DType::bf16}, fa3));
  EXPECT_FALSE(multiplies_in_fp8({.kv_dtype = DType::fp8}, fa2));
  EXPECT_FALSE(multiplies_in_fp8({.kv_dtype = DType::fp8, .math = DType::bf16}, fa3));
}

}  // namespace foretoken::attention_variants_test
