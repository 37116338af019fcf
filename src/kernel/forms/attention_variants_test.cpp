#include "kernel/forms/attention_variants.h"

#include <gtest/gtest.h>

#include <set>

#include "kernel/test_support.h"

namespace foretoken::attention_variants_test {

using namespace test_support;

TEST(AttentionVariants, names_are_unique_and_tiles_are_tiles) {
  std::set<std::string_view> names;
  for (const AttentionVariant& variant : attention_variants) {
    EXPECT_TRUE(names.insert(variant.name).second) << variant.name;
    for (const int side : {variant.rows, variant.rows_narrow, variant.keys, variant.keys_wide, variant.encoder_rows,
                           variant.encoder_keys, variant.encoder_padding})
      EXPECT_TRUE(side >= 16 && side <= 256 && side % 16 == 0) << variant.name << " " << side;
  }
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
  EXPECT_EQ(chosen("b300_sxm", {.phase = AttentionPhase::decode}), "fi_trtllmprefill");
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
