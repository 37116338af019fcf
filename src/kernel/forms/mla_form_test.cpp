#include "kernel/forms/mla_form.h"

#include <gtest/gtest.h>

#include "kernel/test_support.h"

namespace foretoken::mla_form_test {

using namespace test_support;

constexpr const char* devices[] = {"a100_sxm", "h100_sxm", "b200_sxm", "l40s", "rtx_pro_6000_server"};
constexpr double left_out = 3e-4;  // of soft maxima

double seconds(const Form& form, const LatentAttentionShape& shape, const char* device) {
  return form_seconds(form, {.shape = shape, .variant = {}}, traits_named(device), start_constants(form));
}

double constant(const Form& form, std::string_view name) {
  for (const FormConstant& c : form.constants()) {
    if (c.name == name) return c.start;
  }
  ADD_FAILURE() << "no constant " << name;
  return 0;
}

TEST(MlaPrefillForm, longer_contexts_larger_batches_and_more_heads_are_never_faster) {
  const std::unique_ptr<Form> form = make_mla_prefill_form();
  for (const char* device : devices) {
    double longer = 0, larger = 0, more = 0;
    for (int64_t n = 1; n <= 100; ++n) {
      const double kv = seconds(*form, {.batch = 2, .heads = 16, .q_len = 512, .kv_len = 512 + 128 * n}, device);
      const double batch = seconds(*form, {.batch = n, .heads = 16, .q_len = 300, .kv_len = 300}, device);
      const double heads = seconds(*form, {.batch = 2, .heads = n, .q_len = 300, .kv_len = 900}, device);
      ASSERT_GE(kv, longer * (1 - left_out)) << device << " " << n;
      ASSERT_GE(batch, larger * (1 - left_out)) << device << " " << n;
      ASSERT_GE(heads, more * (1 - left_out)) << device << " " << n;
      longer = kv;
      larger = batch;
      more = heads;
    }
  }
}

TEST(MlaDecodeForm, a_longer_context_is_never_faster) {
  const std::unique_ptr<Form> form = make_mla_decode_form();
  for (const char* device : devices) {
    for (const int64_t batch : {1, 5, 33, 132, 400}) {
      for (const int64_t heads : {8, 16, 128}) {
        double before = 0;
        for (int64_t kv_len = 1; kv_len < 100000; kv_len += 1 + kv_len / 9) {
          const double now = seconds(
              *form, {.phase = AttentionPhase::decode, .batch = batch, .heads = heads, .kv_len = kv_len}, device);
          ASSERT_GE(now, before * (1 - left_out))
              << device << " batch " << batch << " heads " << heads << " kv " << kv_len;
          before = now;
        }
      }
    }
  }
}

TEST(MlaDecodeForm, a_larger_batch_is_never_faster_but_for_the_join_it_no_longer_needs) {
  const std::unique_ptr<Form> form = make_mla_decode_form();
  for (const char* device : devices) {
    const double join = constant(*form, "join_cycles") / traits_named(device).clock;
    for (const int64_t kv_len : {50, 2000, 60000}) {
      double longest = 0;
      for (int64_t batch = 1; batch <= 400; ++batch) {
        const double now =
            seconds(*form, {.phase = AttentionPhase::decode, .batch = batch, .heads = 16, .kv_len = kv_len}, device);
        ASSERT_GE(now, longest * (1 - left_out) - join) << device << " batch " << batch << " kv " << kv_len;
        longest = std::max(longest, now);
      }
    }
  }
}

TEST(MlaDecodeForm, a_split_that_just_fills_the_processors_is_one_wave) {
  // Time between neighbouring batch sizes moves by the work, not by a wave that rounding of the quotient invents.
  const std::unique_ptr<Form> form = make_mla_decode_form();
  for (int64_t batch = 2; batch < 130; ++batch) {
    const auto at = [&](int64_t n) {
      return seconds(*form, {.phase = AttentionPhase::decode, .batch = n, .heads = 16, .kv_len = 60000}, "h100_sxm");
    };
    ASSERT_LT(at(batch), 1.3 * at(batch - 1) * static_cast<double>(batch) / static_cast<double>(batch - 1)) << batch;
  }
}

TEST(MlaDecodeForm, several_new_tokens_per_sequence_cost_at_least_as_much_as_one) {
  const std::unique_ptr<Form> form = make_mla_decode_form();
  for (const char* device : devices) {
    double before = 0, one = 0;
    for (const int64_t q_len : {1, 2, 4, 16}) {
      const double now = seconds(
          *form, {.phase = AttentionPhase::decode, .batch = 64, .heads = 128, .q_len = q_len, .kv_len = 8192}, device);
      EXPECT_GE(now, before * (1 - left_out)) << device << " q " << q_len;
      before = now;
      if (q_len == 1) one = now;
    }
    EXPECT_GT(before, 2 * one) << device;
  }
}

TEST(MlaDecodeForm, sparse_attention_reads_the_chosen_keys_only) {
  const std::unique_ptr<Form> form = make_mla_decode_form();
  const LatentAttentionShape sparse{
      .phase = AttentionPhase::decode, .batch = 64, .heads = 128, .kv_len = 65536, .top_k = 2048};
  LatentAttentionShape longer = sparse, dense = sparse;
  longer.kv_len = 131072;
  dense.top_k = 0;
  for (const char* device : devices) {
    EXPECT_EQ(seconds(*form, longer, device), seconds(*form, sparse, device));
    EXPECT_GT(seconds(*form, dense, device), 4 * seconds(*form, sparse, device)) << device;
  }
}

TEST(MlaDecodeForm, every_query_of_a_sparse_prompt_fills_a_tile_of_its_own) {
  const std::unique_ptr<Form> form = make_mla_decode_form();
  LatentAttentionShape prompt{
      .phase = AttentionPhase::decode, .heads = 64, .q_len = 4096, .kv_len = 4096, .top_k = 2048};
  for (const char* device : {"h100_sxm", "b200_sxm"}) {
    const double whole = seconds(*form, prompt, device);
    const double flops = 4096.0 * 64 * 2048 * 2 * (512 + 64 + 512);
    const double rate = flops / whole / traits_named(device).peak[static_cast<size_t>(DType::bf16)];
    EXPECT_NEAR(rate, 0.64, 0.05) << device << ": FlashMLA states 640 of 989 and 1,450 of 2,250 TFLOP/s";
    LatentAttentionShape cut = prompt;
    cut.heads = 8;
    EXPECT_NEAR(seconds(*form, cut, device) / whole, 1, 0.03) << device << ": eight heads are padded to 64";
  }
}

}  // namespace foretoken::mla_form_test
