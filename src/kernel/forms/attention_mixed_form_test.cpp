#include "kernel/forms/attention_mixed_form.h"

#include <gtest/gtest.h>

#include "kernel/forms/attention_decode_form.h"
#include "kernel/forms/attention_prefill_form.h"
#include "kernel/test_support.h"

namespace foretoken::attention_mixed_form_test {

using namespace test_support;

MixedAttentionShape llama_heads() {
  return {.heads = 32, .kv_heads = 8, .writes_kv = true};
}

double seconds(const Form& form, const KernelShape& shape, const std::string& device, std::string variant = "fa2",
               Caches keys = Caches::benchmark) {
  return form_seconds(form, {.shape = shape, .variant = std::move(variant), .keys = keys}, traits_named(device),
                      start_constants(form));
}

// Random batches of prompts and decodes.
MixedAttentionShape random_batch(RandomStream& random) {
  MixedAttentionShape shape = llama_heads();
  const auto size = [&](double most) { return static_cast<int64_t>(std::exp2(random.uniform(0, most))); };
  for (uint64_t i = 0, kinds = 1 + random.below(3); i < kinds; ++i) {
    const int64_t q_len = size(11);
    shape.add_prompts(1, q_len, q_len + size(13));
  }
  for (uint64_t i = 0, kinds = 1 + random.below(3); i < kinds; ++i) shape.add_decodes(size(7), size(14));
  return shape;
}

TEST(AttentionMixedForm, a_batch_without_decodes_is_a_prefill) {
  const auto mixed_form = make_attention_mixed_form(), prefill_form = make_attention_prefill_form();
  RandomStream random(1, "prompts");
  for (int i = 0; i < 200; ++i) {
    MixedAttentionShape batch = llama_heads();
    const auto q_len = static_cast<int64_t>(1 + random.below(4000));
    batch.add_prompts(static_cast<int64_t>(1 + random.below(8)), q_len,
                      q_len + static_cast<int64_t>(random.below(9000)));
    const KernelShape call = equal_parts(batch).calls[0];
    for (const char* variant : {"fa3", "fi_fiprefill"}) {
      const double prefill = seconds(*prefill_form, call, "h100_sxm", variant);
      EXPECT_DOUBLE_EQ(seconds(*mixed_form, batch, "h100_sxm", variant), prefill);
      EXPECT_DOUBLE_EQ(seconds(*mixed_form, call, "h100_sxm", variant), prefill);
    }
  }
}

TEST(AttentionMixedForm, neither_part_alone_takes_longer_than_both) {
  const auto form = make_attention_mixed_form();
  RandomStream random(2, "batches");
  for (int i = 0; i < 500; ++i) {
    const MixedAttentionShape batch = random_batch(random);
    MixedAttentionShape prompts = batch;
    prompts.decodes = prompts.decode_keys = prompts.longest_decode = 0;
    for (const char* device : {"rtx_4090", "h100_sxm"}) {
      // A few tiles more may even out the last wave: up to the share of it that is lost.
      EXPECT_GE(seconds(*form, batch, device) * 1.3, seconds(*form, prompts, device));
    }
  }
}

// FlashAttention 2 packs query heads and splits contexts for decodes alone, not beside a prompt. (An RTX 4090 measured
// by LLMServingSim: 71 us for a prompt of 512 tokens and eight decodes over 256, 41 and 24 us apart.)
TEST(AttentionMixedForm, beside_a_prompt_decodes_lose_their_packing) {
  const auto form = make_attention_mixed_form(), decode_form = make_attention_decode_form();
  MixedAttentionShape batch = llama_heads(), prompt = llama_heads(), decodes = llama_heads();
  for (MixedAttentionShape* shape : {&batch, &prompt}) shape->add_prompts(1, 512, 512);
  for (MixedAttentionShape* shape : {&batch, &decodes}) shape->add_decodes(8, 256);
  EXPECT_GT(seconds(*form, batch, "rtx_4090"),
            seconds(*form, prompt, "rtx_4090") + seconds(*decode_form, decodes, "rtx_4090"));
}

TEST(AttentionMixedForm, a_longer_longest_decode_and_cold_keys_never_help) {
  const auto form = make_attention_mixed_form();
  RandomStream random(3, "batches");
  for (int i = 0; i < 500; ++i) {
    const MixedAttentionShape batch = random_batch(random);
    for (const char* variant : {"fa2", "fa3"}) {
      const double before = seconds(*form, batch, "rtx_4090", variant);
      MixedAttentionShape skewed = batch;
      skewed.longest_decode *= 2;
      EXPECT_GE(seconds(*form, skewed, "rtx_4090", variant), before);
      EXPECT_GE(seconds(*form, batch, "rtx_4090", variant, Caches::cold), before * (1 - 1e-12));
    }
  }
}

// A prompt beside decodes: FlashAttention 2 runs the heads of a group one after the other. Where one head's keys of the
// whole batch outgrow L2 (72 MB here), every head reads them from memory again.
TEST(AttentionMixedForm, keys_that_outgrow_the_cache_are_read_again_unless_heads_are_packed) {
  const auto form = make_attention_mixed_form();
  MixedAttentionShape batch = llama_heads();
  batch.add_prompts(1, 64, 64);
  batch.add_decodes(128, 4096);
  // Keys are cold either way: a larger cache can only save reading them again.
  const auto saved_by_cache = [&](const std::string& variant) {
    DeviceTraits traits = traits_named("rtx_4090");
    for (double& peak : traits.peak) peak *= 20;  // bound by memory
    const FormCall call{.shape = batch, .variant = variant, .keys = Caches::cold};
    const double small = form_seconds(*form, call, traits, start_constants(*form));
    traits.cache *= 1000;
    return small / form_seconds(*form, call, traits, start_constants(*form));
  };
  EXPECT_GT(saved_by_cache("fa2"), 1.3);
  EXPECT_LT(saved_by_cache("fi_fiprefill"), 1.01);
}

TEST(AttentionDecodeForm, unequal_decodes_take_longer_only_where_no_context_is_split) {
  const auto form = make_attention_decode_form();
  const auto excess = [&](int64_t decodes) {
    MixedAttentionShape equal = llama_heads();
    equal.add_decodes(decodes, 4096);
    MixedAttentionShape unequal = llama_heads();
    unequal.add_decodes(decodes / 2, 2048);
    unequal.add_decodes(decodes / 2, 6144);
    EXPECT_DOUBLE_EQ(seconds(*form, equal, "rtx_4090"), seconds(*form, equal_decodes(equal), "rtx_4090"));
    return seconds(*form, unequal, "rtx_4090") / seconds(*form, equal, "rtx_4090") - 1;
  };
  EXPECT_EQ(excess(4), 0);  // 32 heads of keys for 128 processors: contexts are split
  EXPECT_GT(excess(32), 0.005);
  EXPECT_GT(excess(32), excess(256));  // a longer queue hides the last one better
}

}  // namespace foretoken::attention_mixed_form_test
