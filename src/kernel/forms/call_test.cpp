#include "kernel/forms/call.h"

#include <gtest/gtest.h>

#include "kernel/test_support.h"

namespace foretoken::call_test {

using namespace test_support;

TEST(FormCall, groups_tell_variants_and_formats_apart_and_sizes_together) {
  const auto group = [](const KernelShape& shape, const char* variant = "") {
    return call_group({.shape = shape, .variant = variant});
  };
  EXPECT_EQ(group(AttentionShape{.kv_dtype = DType::fp8}, "fa3"), "fa3 fp8");
  EXPECT_EQ(group(AttentionShape{.kv_dtype = DType::fp8}), "fp8");
  EXPECT_EQ(group(AttentionShape{.batch = 9}, "fa3"), group(AttentionShape{.heads = 64}, "fa3"));
  EXPECT_EQ(group(GemmShape{.scheme = Scheme::fp8_block}), facts(Scheme::fp8_block).name);
  EXPECT_NE(group(MoeShape{.gated = true}), group(MoeShape{.gated = false}));
  EXPECT_NE(group(NormShape{.layer_norm = true}), group(NormShape{.layer_norm = false}));
  const AttentionShape multiplied_in_fp8{.kv_dtype = DType::fp8, .math = DType::fp8};
  EXPECT_EQ(group(multiplied_in_fp8, "fa3"), "fa3 fp8");
  EXPECT_EQ(group(multiplied_in_fp8, "trtllm"), "trtllm fp8-fp8");
  EXPECT_EQ(group(LinearAttentionShape{.decode = true}), "linattn_gdn recurrence decode");
  EXPECT_NE(group(HyperConnectionShape{.post = true}), group(HyperConnectionShape{}));
  EXPECT_EQ(group(RopeShape{}), "rope");
  EXPECT_NE(group(RopeShape{}), group(SoftmaxShape{}));
  EXPECT_NE(group(SoftmaxShape{.width = 64, .dtype = DType::fp32}),
            group(SoftmaxShape{.width = 4096, .dtype = DType::fp32}));
  EXPECT_NE(group(GemmShape{.scheme = Scheme::fp32}), group(GemmShape{.batch = 2, .scheme = Scheme::fp32}));
  EXPECT_EQ(group(GemmShape{}), group(GemmShape{.batch = 2}));
}

TEST(FormCall, raw_features_are_logarithms_of_the_sizes) {
  const auto raw = raw_features(
      {.shape =
           AttentionShape{
               .batch = 2, .heads = 16, .kv_heads = 4, .head_dim = 128, .q_len = 32, .kv_len = 1024, .window = 0},
       .variant = {}});
  EXPECT_EQ(raw, (std::array<float, raw_feature_count>{1, 4, 2, 7, 5, 10, -1, 5}));
}

TEST(FormCall, named_sizes_are_the_raw_features_in_words) {
  RandomStream random(2, "named");
  for (const FormKind& kind : form_kinds()) {
    for (int i = 0; i < 50; ++i) {
      const FormCall call = random_call(kind, random);
      const std::vector<NamedSize> sizes = named_sizes(call.shape);
      if (sizes.empty()) continue;
      const auto raw = raw_features(call);
      ASSERT_LE(sizes.size(), raw.size());
      for (size_t s = 0; s < raw.size(); ++s) {
        if (s >= sizes.size()) {
          ASSERT_EQ(raw[s], 0) << kind.name << ": a raw feature without a name";
        } else if (sizes[s].is_logarithmic) {
          ASSERT_NEAR(raw[s], std::log2(std::max(sizes[s].value, 0.5)), 1e-5) << kind.name << " " << sizes[s].name;
        } else {
          ASSERT_NEAR(raw[s], sizes[s].value, 1e-6) << kind.name << " " << sizes[s].name;
        }
      }
    }
  }
}

TEST(FormCall, raw_features_are_finite_for_every_family) {
  RandomStream random(1, "raw");
  for (const KernelFamily& family : kernel_families()) {
    for (int i = 0; i < 50; ++i) {
      for (const float value : raw_features({.shape = random_shape(family, random), .variant = {}}))
        ASSERT_TRUE(std::isfinite(value)) << family.name;
    }
  }
}

TEST(FormCall, traits_are_the_facts_of_the_sheet) {
  const TraitsOfDevice found = traits_of(hardware().device("h100_sxm"));
  ASSERT_TRUE(found.complete);
  EXPECT_EQ(found.traits.processors, 132);
  EXPECT_EQ(found.traits.generation->title, "Hopper");
  EXPECT_TRUE(found.traits.asynchronous);
  EXPECT_TRUE(found.traits.stacked_memory);
  EXPECT_NEAR(found.traits.peak[static_cast<size_t>(DType::bf16)], 989.4e12, 1e12);
  EXPECT_NEAR(found.traits.bandwidth, 3.35e12, 0.01e12);
  const DeviceTraits ampere = traits_named("a100_sxm"), ada = traits_named("l40s"), ultra = traits_named("b300_sxm");
  EXPECT_FALSE(ampere.asynchronous);
  EXPECT_TRUE(ampere.stacked_memory);
  EXPECT_EQ(ampere.peak[static_cast<size_t>(DType::fp8)], ampere.peak[static_cast<size_t>(DType::bf16)]);
  EXPECT_FALSE(ada.stacked_memory);
  EXPECT_EQ(ultra.exponentials_per_clock, 2 * ampere.exponentials_per_clock);
  EXPECT_TRUE(ultra.asynchronous);
}

TEST(FormCall, memory_that_a_cpu_shares_is_read_as_fast_as_it_was_measured) {
  const double read = 0.97 * traits_named("gb10").bandwidth;  // as streaming kernels of swept boards
  EXPECT_GT(read, 231e9);
  EXPECT_LT(read, 234e9);
  EXPECT_NEAR(traits_named("rtx_5090").bandwidth, hardware().device("rtx_5090").memory_bandwidth->value.value(), 1);
}

TEST(FormCall, amds_gpus_are_told_apart_from_nvidias) {
  const TraitsOfDevice found = traits_of(hardware().device("mi210"));
  ASSERT_TRUE(found.complete);
  EXPECT_TRUE(found.traits.amd);
  EXPECT_EQ(found.traits.generation->attention, AttentionKernels::flash_2);
  EXPECT_TRUE(found.traits.stacked_memory);
  EXPECT_EQ(found.traits.power, 300);
  EXPECT_FALSE(traits_named("p100").amd);
}

TEST(FormCall, a_device_that_is_like_another_runs_its_kernels_with_its_own_facts) {
  Device device = hardware().device("b200_sxm");
  device.instruction_set = "sm_140";
  EXPECT_FALSE(traits_of(device).complete);
  device.like = LikeDevice{.name = "b200_sxm", .title = "B200", .instruction_set = "sm_100"};
  device.processors->value = 200;
  device.exponentials_per_clock->value = 64;
  device.memory_type->value = MemoryType::gddr7;
  const TraitsOfDevice found = traits_of(device);
  ASSERT_TRUE(found.complete);
  EXPECT_EQ(found.traits.generation, traits_named("b200_sxm").generation);
  EXPECT_EQ(found.traits.processors, 200);
  EXPECT_EQ(found.traits.exponentials_per_clock, 64);
  EXPECT_FALSE(found.traits.stacked_memory);
}

TEST(FormCall, what_is_neither_a_cuda_nor_a_cdna_gpu_or_lacks_a_fact_is_incomplete) {
  for (const char* name : {"tpu_v5e", "gaudi2", "xeon_8480", "grace"})
    EXPECT_FALSE(traits_of(hardware().device(name)).complete) << name;
  const Device whole = hardware().device("h100_sxm");
  EXPECT_TRUE(traits_of(whole).complete);
  Device device = whole;
  device.boost_clock.reset();
  EXPECT_FALSE(traits_of(device).complete);
  device = whole;
  device.last_level_cache.reset();
  EXPECT_FALSE(traits_of(device).complete);
  device = whole;
  device.processors.reset();
  EXPECT_FALSE(traits_of(device).complete);
}

}  // namespace foretoken::call_test
