#include "kernel/forms/attention_decode_form.h"

#include <gtest/gtest.h>

#include "kernel/forms/attention_variants.h"
#include "kernel/test_support.h"

namespace foretoken::attention_decode_form_test {

using namespace test_support;

class DecodeForm : public testing::Test {
 protected:
  double seconds(AttentionShape shape, const char* variant = "", const char* device = "h100_sxm") const {
    shape.phase = AttentionPhase::decode;
    return form_seconds(*form, {.shape = shape, .variant = variant}, traits_named(device), constants);
  }
  double constant(std::string_view name) const {
    for (size_t k = 0; k < constants.size(); ++k) {
      if (form->constants()[k].name == name) return constants[k];
    }
    ADD_FAILURE() << "no constant " << name;
    return 0;
  }
  std::unique_ptr<Form> form = make_attention_decode_form();
  std::vector<double> constants = start_constants(*form);
};

constexpr const char* devices[] = {"a100_sxm", "h100_sxm", "b200_sxm", "l40s", "rtx_pro_6000_server", "rtx_4090"};
constexpr double left_out = 3e-4;  // of soft maxima

TEST_F(DecodeForm, a_longer_context_is_never_faster) {
  for (const char* device : devices) {
    for (const char* variant : {"", "fa2", "fa3", "fa4", "fi_trtllmdecode", "triton_attn"}) {
      for (const int64_t window : {0, 128, 1000}) {
        for (const int64_t batch : {1, 7, 20, 64, 500}) {
          double before = 0;
          for (int64_t kv_len = 1; kv_len < 200000; kv_len += 1 + kv_len / 7) {
            const AttentionShape shape{
                .batch = batch, .heads = 32, .kv_heads = 8, .kv_len = kv_len, .window = window, .writes_kv = true};
            const double now = seconds(shape, variant, device);
            ASSERT_GE(now, before * (1 - left_out))
                << device << " " << variant << " batch " << batch << " kv " << kv_len << " window " << window;
            before = now;
          }
        }
      }
    }
  }
}

TEST_F(DecodeForm, flashinfer_multiplies_whole_tiles_of_16_or_64_rows) {
  const auto of_group = [&](int64_t group) {
    return seconds({.batch = 64, .heads = group, .kv_heads = 1, .head_dim = 64, .kv_len = 2048, .kv_dtype = DType::fp8},
                   "fi_fidecode", "rtx_pro_6000_server");
  };
  EXPECT_NEAR(of_group(16) / of_group(4), 1, 0.05);
  EXPECT_GT(of_group(17) / of_group(16), 1.2);
  EXPECT_NEAR(of_group(64) / of_group(17), 1, 0.05);
}

TEST_F(DecodeForm, generated_kernels_multiply_8_or_16_rows_and_wider_groups_64) {
  const auto of_group = [&](int64_t group) {
    return seconds({.batch = 512, .heads = group, .kv_heads = 1, .head_dim = 64, .kv_len = 512}, "fi_trtllmdecode",
                   "b200_sxm");
  };
  EXPECT_NEAR(of_group(8) / of_group(1), 1, 0.05);
  EXPECT_GT(of_group(32) / of_group(16), 1.1);
  EXPECT_NEAR(of_group(64) / of_group(17), 1, 0.1);
}

TEST_F(DecodeForm, nothing_hides_the_start_of_a_block_that_fills_its_processor) {
  const auto at = [&](int64_t batch) {
    return seconds({.batch = batch, .heads = 8, .kv_heads = 1, .kv_len = 1024}, "fa3", "h100_sxm");
  };
  // 132 processors: three more waves cost their starts beside the bytes that they read.
  const double bytes = 3 * 132 * 1024.0 * 128 * 2 * 2;
  const double started = 3 * constant("tile_overhead");
  EXPECT_GT(at(4 * 132) - at(132), started + bytes / traits_named("h100_sxm").bandwidth);
}

TEST_F(DecodeForm, a_larger_batch_is_never_faster_but_for_the_join_it_no_longer_needs) {
  for (const char* device : devices) {
    const double join = constant("join_cycles") / traits_named(device).clock;
    for (const char* variant : {"", "fa2", "fa3", "fi_trtllmdecode"}) {
      for (const int64_t kv_len : {16, 1000, 30000}) {
        double longest = 0;
        for (int64_t batch = 1; batch <= 300; ++batch) {
          const double now = seconds({.batch = batch, .heads = 32, .kv_heads = 8, .kv_len = kv_len, .writes_kv = true},
                                     variant, device);
          ASSERT_GE(now, longest * (1 - left_out) - join) << device << " " << variant << " batch " << batch;
          longest = std::max(longest, now);
        }
      }
    }
  }
}

TEST_F(DecodeForm, large_batches_stream_the_cache_at_most_of_the_bandwidth) {
  for (const char* device : devices) {
    const double bytes = 256.0 * 16384 * 8 * 128 * 2 * 2;
    const double share = bytes / traits_named(device).bandwidth /
                         seconds({.batch = 256, .heads = 32, .kv_heads = 8, .kv_len = 16384}, "", device);
    EXPECT_LT(share, 1) << device;
    EXPECT_GT(share, 0.4) << device;
  }
}

TEST_F(DecodeForm, flash_attention_4_starts_all_parts_of_a_graph_even_of_a_short_context) {
  const auto at = [&](int64_t batch, int64_t kv_len) {
    return seconds({.batch = batch, .heads = 8, .kv_heads = 1, .head_dim = 512, .kv_len = kv_len}, "fa4");
  };
  // 32 parts of each sequence on 132 processors. Measured: 147 us for 64 sequences of 2 keys, 156 for 1,024 keys each.
  EXPECT_GT(at(64, 2) - at(4, 2), 14 * constant("tile_overhead"));
  EXPECT_LT(at(64, 1024), 2 * at(64, 2));
  // No graph holds more than 512 sequences. Measured: 2.4 ms for 512, a fifth of it for 1,024.
  EXPECT_LT(at(1024, 2), 0.5 * at(512, 2));
}

TEST_F(DecodeForm, flash_attention_3_splits_into_no_more_parts_than_a_graph_has_room_for) {
  const auto parts = [&](int64_t batch) {
    const AttentionShape shape{
        .phase = AttentionPhase::decode, .batch = batch, .heads = 8, .kv_heads = 1, .kv_len = 131072};
    for (const Explained& line :
         form->explain({.shape = shape, .variant = "fa3"}, traits_named("h100_sxm"), constants, 0)) {
      if (line.name == "split_keys") return line.value;
    }
    return 0.0;
  };
  EXPECT_EQ(parts(1), 32);
  EXPECT_EQ(parts(2), 32);
  EXPECT_LT(parts(8), 32);
}

TEST_F(DecodeForm, keys_beyond_the_window_change_neither_the_time_nor_what_trees_see) {
  std::vector<std::string_view> variants = attention_variant_names();
  variants.emplace_back();
  for (const char* device : devices) {
    for (const std::string_view variant : variants) {
      const auto at = [&](int64_t kv_len) {
        const AttentionShape shape{
            .phase = AttentionPhase::decode, .batch = 64, .heads = 32, .kv_heads = 8, .kv_len = kv_len, .window = 1024};
        int choice = 0;
        std::vector<float> seen(form->feature_count() + 1);
        seen.back() = static_cast<float>(form->seconds_and_features({.shape = shape, .variant = std::string(variant)},
                                                                    traits_named(device), constants, choice, seen));
        return seen;
      };
      // Triton's kernel divides the whole context: a part as long as the window is the longest that there can be.
      const int64_t first = variant == "triton_attn" ? 16 * 1024 : 4096;
      EXPECT_EQ(at(first + 1), at(first)) << device << " " << variant;
      EXPECT_EQ(at(131072), at(first)) << device << " " << variant;
    }
  }
}

TEST_F(DecodeForm, the_triton_kernel_divides_the_whole_context_so_that_fewer_parts_share_a_window) {
  const auto at = [&](int64_t kv_len) {
    return seconds({.batch = 1, .heads = 8, .kv_heads = 1, .kv_len = kv_len, .window = 1024}, "triton_attn");
  };
  EXPECT_GT(at(16384), 1.2 * at(2048));
}

TEST_F(DecodeForm, a_window_bounds_the_keys) {
  const AttentionShape windowed{.batch = 64, .heads = 32, .kv_heads = 8, .kv_len = 32768, .window = 1024};
  AttentionShape longer = windowed;
  longer.kv_len = 65536;
  EXPECT_EQ(seconds(longer), seconds(windowed));
  AttentionShape full = windowed;
  full.window = 0;
  EXPECT_GT(seconds(full), 5 * seconds(windowed));
}

TEST_F(DecodeForm, several_new_tokens_per_sequence_cost_at_least_as_much_as_one) {
  for (const char* device : devices) {
    double before = 0;
    for (const int64_t q_len : {1, 2, 4, 8, 16, 64}) {
      const double now = seconds(
          {.batch = 64, .heads = 64, .kv_heads = 8, .q_len = q_len, .kv_len = 4096, .writes_kv = true}, "", device);
      EXPECT_GE(now, before * (1 - left_out)) << device << " q " << q_len;
      before = now;
    }
    // 64 tokens of 8 heads a group are 512 rows of multiplies: no longer hidden behind the cache.
    EXPECT_GT(before,
              1.5 * seconds({.batch = 64, .heads = 64, .kv_heads = 8, .kv_len = 4096, .writes_kv = true}, "", device))
        << device;
  }
}

TEST_F(DecodeForm, an_fp8_cache_is_faster_where_the_cache_decides) {
  const AttentionShape wide{.batch = 256, .heads = 32, .kv_heads = 8, .kv_len = 16384};
  AttentionShape narrow = wide;
  narrow.kv_dtype = DType::fp8;
  for (const char* device : {"h100_sxm", "b200_sxm", "l40s"})
    EXPECT_LT(seconds(narrow, "", device), 0.8 * seconds(wide, "", device)) << device;
}

TEST_F(DecodeForm, unknown_kernels_are_what_vllm_runs) {
  const AttentionShape shape{.batch = 8, .heads = 32, .kv_heads = 8, .kv_len = 4096};
  EXPECT_EQ(seconds(shape, "never heard of", "a100_sxm"), seconds(shape, "fa2", "a100_sxm"));
  EXPECT_NE(seconds(shape, "fa3", "h100_sxm"), seconds(shape, "fa2", "h100_sxm"));
}

}  // namespace foretoken::attention_decode_form_test
