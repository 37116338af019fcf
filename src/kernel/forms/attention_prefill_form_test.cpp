#include "kernel/forms/attention_prefill_form.h"

#include <gtest/gtest.h>

#include "kernel/test_support.h"

namespace foretoken::attention_prefill_form_test {

using namespace test_support;

class PrefillForm : public testing::Test {
 protected:
  double seconds(const AttentionShape& shape, const char* variant = "", const char* device = "h100_sxm") const {
    return form_seconds(*form, {.shape = shape, .variant = variant}, traits_named(device), constants);
  }
  std::unique_ptr<Form> form = make_attention_prefill_form();
  std::vector<double> constants = start_constants(*form);
};

constexpr const char* devices[] = {"a100_sxm", "h100_sxm", "b200_sxm", "l40s", "rtx_pro_6000_server"};

// All prompts of the tests end on a block border: a partly filled block costs as much as a full one.
constexpr int64_t block = 128;

TEST_F(PrefillForm, a_longer_context_is_never_faster) {
  for (const char* device : devices) {
    for (const int64_t window : {0, 1000, 4096}) {
      for (const int64_t q_len : {2, 64, 500, 4096}) {
        double before = 0;
        for (int64_t extra = 0; extra < 128 * block; extra += block * (1 + extra / (8 * block))) {
          const double now = seconds({.batch = 2,
                                      .heads = 32,
                                      .kv_heads = 8,
                                      .q_len = q_len,
                                      .kv_len = q_len + extra,
                                      .window = window,
                                      .writes_kv = true},
                                     "", device);
          ASSERT_GE(now, before * (1 - 3e-4)) << device << " q " << q_len << " extra " << extra << " window " << window;
          before = now;
        }
      }
    }
  }
}

TEST_F(PrefillForm, under_a_window_one_key_more_is_never_faster_wherever_blocks_begin) {
  for (const char* device : devices) {
    for (const int64_t head_dim : {64, 128, 256}) {
      for (const int64_t heads : {8, 40, 512}) {
        double before = 0;
        for (int64_t extra = 0; extra < 1200; extra += 7) {
          const double now = seconds({.batch = 1,
                                      .heads = heads,
                                      .kv_heads = 8,
                                      .head_dim = head_dim,
                                      .q_len = 700,
                                      .kv_len = 700 + extra,
                                      .window = 512},
                                     "", device);
          ASSERT_GE(now, before * (1 - 3e-4)) << device << " heads " << heads << " extra " << extra;
          before = now;
        }
      }
    }
  }
}

TEST_F(PrefillForm, keys_beyond_the_window_change_neither_the_time_nor_what_trees_see) {
  for (const char* device : devices) {
    const auto at = [&](int64_t kv_len) {
      const AttentionShape shape{
          .batch = 2, .heads = 32, .kv_heads = 8, .q_len = 500, .kv_len = kv_len, .window = 1000, .writes_kv = true};
      int choice = 0;
      std::vector<float> seen(form->feature_count() + 1);
      seen.back() = static_cast<float>(
          form->seconds_and_features({.shape = shape}, traits_named(device), constants, choice, seen));
      return seen;
    };
    EXPECT_EQ(at(2001), at(2000)) << device;
    EXPECT_EQ(at(131072), at(2000)) << device;
  }
}

TEST_F(PrefillForm, a_larger_batch_or_more_heads_are_never_faster) {
  for (const char* device : devices) {
    for (const int64_t q_len : {2, 100, 2048}) {
      double smaller = 0, fewer = 0;
      for (int64_t n = 1; n <= 64; ++n) {
        const double now =
            seconds({.batch = n, .heads = 16, .kv_heads = 4, .q_len = q_len, .kv_len = 2048}, "", device);
        const double heads =
            seconds({.batch = 2, .heads = 4 * n, .kv_heads = n, .q_len = q_len, .kv_len = 2048}, "", device);
        ASSERT_GE(now, smaller * (1 - 3e-4)) << device << " q " << q_len << " batch " << n;
        ASSERT_GE(heads, fewer * (1 - 3e-4)) << device << " q " << q_len << " heads " << 4 * n;
        smaller = now;
        fewer = heads;
      }
    }
  }
}

TEST_F(PrefillForm, flashinfer_splits_keys_where_tiles_are_few_and_pays_for_merging_rows) {
  const auto parts = [&](const AttentionShape& shape) {
    for (const Explained& line : form->explain({.shape = shape, .variant = "fi_fiprefill"},
                                               traits_named("rtx_pro_6000_server"), constants, 0)) {
      if (line.name == "key_parts") return line.value;
    }
    return 1.0;
  };
  const auto shape = [](int64_t heads, int64_t q_len, int64_t window) {
    return AttentionShape{.batch = 1,
                          .heads = heads,
                          .kv_heads = 1,
                          .head_dim = 64,
                          .q_len = q_len,
                          .kv_len = q_len,
                          .window = window,
                          .kv_dtype = DType::fp8};
  };
  // 188 processors, two blocks on each: 32 tiles of 128 rows split their 2,048 keys into eleven parts of 187.
  EXPECT_EQ(parts(shape(2, 2048, 0)), 11);
  // A window of 128 lets a tile see 256 keys: two parts, as long as twice the tiles fit.
  EXPECT_EQ(parts(shape(11, 2048, 128)), 2);
  EXPECT_EQ(parts(shape(12, 2048, 128)), 1);
  // Measured on an RTX PRO 6000: 57 us for 12 heads of 1,536 tokens, which without the merge would be 12.
  const double split = seconds(shape(11, 2048, 128), "fi_fiprefill", "rtx_pro_6000_server");
  const double whole = seconds(shape(12, 2048, 128), "fi_fiprefill", "rtx_pro_6000_server");
  EXPECT_GT(split, 2 * whole);
}

TEST_F(PrefillForm, longer_prompts_are_never_faster) {
  for (const char* device : devices) {
    double before = 0;
    for (int64_t q_len = block; q_len <= 16384; q_len += block) {
      const double now = seconds({.batch = 1, .heads = 32, .kv_heads = 8, .q_len = q_len, .kv_len = q_len}, "", device);
      ASSERT_GE(now, before * (1 - 3e-4)) << device << " q " << q_len;
      before = now;
    }
  }
}

TEST_F(PrefillForm, a_window_is_never_slower_than_none_and_one_beyond_the_context_changes_nothing) {
  const AttentionShape full{.batch = 2, .heads = 32, .kv_heads = 8, .q_len = 4096, .kv_len = 8192};
  for (const char* device : devices) {
    AttentionShape windowed = full;
    windowed.window = 8192;
    EXPECT_EQ(seconds(windowed, "", device), seconds(full, "", device));
    windowed.window = 512;
    EXPECT_LT(seconds(windowed, "", device), 0.6 * seconds(full, "", device)) << device;
  }
}

TEST_F(PrefillForm, long_prompts_take_four_times_as_long_for_twice_the_tokens) {
  for (const char* device : devices) {
    const auto at = [&](int64_t tokens) {
      return seconds({.batch = 4, .heads = 32, .kv_heads = 8, .q_len = tokens, .kv_len = tokens}, "", device);
    };
    EXPECT_NEAR(at(65536) / at(32768), 4, 0.2) << device;
  }
}

TEST_F(PrefillForm, large_prompts_run_below_the_peak_and_above_a_tenth_of_it) {
  for (const char* device : devices) {
    constexpr double tokens = 16384, pairs = tokens * (tokens + 1) / 2;
    const double flops = 4 * 128 * 32 * pairs;
    const double peak = traits_named(device).peak[static_cast<size_t>(DType::bf16)];
    const double share =
        flops / peak / seconds({.heads = 32, .kv_heads = 8, .q_len = 16384, .kv_len = 16384}, "", device);
    EXPECT_LT(share, 1) << device;
    EXPECT_GT(share, 0.1) << device;
  }
}

TEST_F(PrefillForm, the_cache_write_costs_something) {
  AttentionShape shape{.batch = 4, .heads = 32, .kv_heads = 8, .q_len = 2048, .kv_len = 2048};
  const double bare = seconds(shape);
  shape.writes_kv = true;
  EXPECT_GT(seconds(shape), bare);
}

TEST_F(PrefillForm, kernels_differ) {
  const AttentionShape shape{.batch = 4, .heads = 32, .kv_heads = 8, .q_len = 2048, .kv_len = 2048};
  EXPECT_GT(seconds(shape, "fa2"), seconds(shape, "fa3"));
  EXPECT_GT(seconds(shape, "triton_attn"), seconds(shape, "fa2"));
  EXPECT_EQ(seconds(shape, "never heard of"), seconds(shape, "fa3"));  // what vLLM runs on Hopper
}

TEST(EncoderForm, every_token_sees_all_keys) {
  const std::unique_ptr<Form> encoder = make_attention_encoder_form(), prefill = make_attention_prefill_form();
  const std::vector<double> constants = start_constants(*encoder);
  const DeviceTraits traits = traits_named("a100_sxm");
  const auto at = [&](const Form& form, AttentionPhase phase, bool causal) {
    return form_seconds(form,
                        {.shape = AttentionShape{.phase = phase,
                                                 .batch = 8,
                                                 .heads = 16,
                                                 .kv_heads = 16,
                                                 .q_len = 8192,
                                                 .kv_len = 8192,
                                                 .causal = causal},
                         .variant = "fa2"},
                        traits, constants);
  };
  const double all = at(*encoder, AttentionPhase::encoder, false);
  EXPECT_NEAR(at(*prefill, AttentionPhase::prefill, true) / all, 0.5, 0.06);
  EXPECT_EQ(at(*encoder, AttentionPhase::encoder, true), all);  // an encoder has no causal mask
}

}  // namespace foretoken::attention_prefill_form_test
