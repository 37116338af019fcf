#include "model/work.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace foretoken::model_work_test {

double flops(const KernelShape& shape) {
  return count_work(shape).flops.value();
}
double bytes(const KernelShape& shape) {
  return count_work(shape).bytes().value();
}

// The definition, key by key.
double pairs_by_counting(const AttentionShape& shape) {
  const bool causal = shape.causal && shape.phase != AttentionPhase::encoder;
  double pairs = 0;
  for (int64_t query = 0; query < shape.q_len; ++query) {
    const int64_t position = shape.kv_len - shape.q_len + query;
    for (int64_t key = 0; key < shape.kv_len; ++key) {
      if (causal && key > position) continue;
      if (shape.window > 0 && std::abs(position - key) >= shape.window) continue;
      pairs += 1;
    }
  }
  return pairs;
}

TEST(Work, a_gemm_is_counted_as_by_hand) {
  const Work work = count_work(GemmShape{.m = 3, .n = 5, .k = 7});
  EXPECT_EQ(work.flops.value(), 2 * 3 * 5 * 7);
  EXPECT_EQ(work.weights_read.value(), 5 * 7 * 2);
  EXPECT_EQ(work.activations_read.value(), 3 * 7 * 2);
  EXPECT_EQ(work.written.value(), 3 * 5 * 2);
  EXPECT_EQ(flops(GemmShape{.m = 3, .n = 5, .k = 7, .batch = 4}), 4 * work.flops.value());
  EXPECT_EQ(bytes(GemmShape{.m = 3, .n = 5, .k = 7, .batch = 4}), 4 * work.bytes().value());
}

TEST(Work, a_quantized_gemm_still_reads_bf16_activations) {
  const Work work = count_work(GemmShape{.m = 16, .n = 32, .k = 64, .scheme = Scheme::fp8});
  EXPECT_EQ(work.math, DType::fp8);
  EXPECT_EQ(work.weights_read.value(), 32 * 64);
  EXPECT_EQ(work.activations_read.value(), 16 * 64 * 2);
  EXPECT_EQ(count_work(GemmShape{.scheme = Scheme::int4_wo}).math, DType::bf16);
}

TEST(Work, causal_pairs_of_a_whole_prompt_are_a_triangle) {
  for (const int64_t length : {1, 2, 17, 1000, 131072}) {
    const double s = static_cast<double>(length);
    EXPECT_EQ(attended_pairs({.q_len = length, .kv_len = length}), s * (s + 1) / 2);
  }
}

TEST(Work, a_window_as_long_as_the_context_changes_nothing) {
  const AttentionShape full{.batch = 2, .heads = 8, .kv_heads = 2, .q_len = 300, .kv_len = 500};
  AttentionShape windowed = full;
  for (const int64_t window : {500, 501, 100000}) {
    windowed.window = window;
    EXPECT_EQ(flops(full), flops(windowed));
    EXPECT_EQ(bytes(full), bytes(windowed));
  }
}

TEST(Work, pairs_agree_with_counting_them_one_by_one) {
  for (const AttentionPhase phase : {AttentionPhase::prefill, AttentionPhase::encoder}) {
    for (int64_t kv_len = 1; kv_len <= 13; ++kv_len) {
      for (int64_t q_len = 1; q_len <= kv_len; ++q_len) {
        for (int64_t window = 0; window <= 15; ++window) {
          const AttentionShape shape{.phase = phase, .q_len = q_len, .kv_len = kv_len, .window = window};
          EXPECT_EQ(attended_pairs(shape), pairs_by_counting(shape)) << q_len << " " << kv_len << " " << window;
        }
      }
    }
  }
}

TEST(Work, an_encoder_attends_to_everything) {
  EXPECT_EQ(attended_pairs({.phase = AttentionPhase::encoder, .q_len = 77, .kv_len = 77}), 77 * 77);
  EXPECT_EQ(attended_pairs({.q_len = 10, .kv_len = 77, .causal = false}), 10 * 77);
}

TEST(Work, prefill_attention_is_counted_as_by_hand) {
  const AttentionShape shape{.batch = 2, .heads = 4, .kv_heads = 1, .head_dim = 64, .q_len = 8, .kv_len = 8};
  const Work work = count_work(shape);
  EXPECT_EQ(work.flops.value(), 2.0 * 36 * 2 * 4 * (64 + 64));
  EXPECT_EQ(work.activations_read.value(), 2.0 * 2 * 8 * 4 * 64 + 2.0 * 2 * 8 * (64 + 64));
  EXPECT_EQ(work.written.value(), 2.0 * 2 * 8 * 4 * 64);

  AttentionShape filling = shape;
  filling.writes_kv = true;
  filling.kv_dtype = DType::fp8;
  EXPECT_EQ(count_work(filling).activations_read, work.activations_read);  // the new K and V come in bf16
  EXPECT_EQ(count_work(filling).written.value() - work.written.value(), 2.0 * 8 * (64 + 64));
}

TEST(Work, a_window_bounds_the_keys_that_decode_reads) {
  const AttentionShape shape{
      .phase = AttentionPhase::decode, .heads = 8, .kv_heads = 8, .q_len = 1, .kv_len = 4096, .window = 128};
  AttentionShape short_context = shape;
  short_context.kv_len = 128;
  EXPECT_EQ(bytes(shape), bytes(short_context));
  EXPECT_EQ(flops(shape), flops(short_context));
}

TEST(Work, decode_bytes_grow_linearly_with_the_context) {
  AttentionShape shape{
      .phase = AttentionPhase::decode, .batch = 3, .heads = 32, .kv_heads = 8, .q_len = 1, .writes_kv = true};
  const auto bytes_at = [&](int64_t kv_len) { return shape.kv_len = kv_len, bytes(shape); };
  const double step = bytes_at(2) - bytes_at(1);
  EXPECT_EQ(step, 3.0 * 8 * 256 * 2);
  for (const int64_t kv_len : {10, 1000, 65536}) {
    EXPECT_EQ(bytes_at(kv_len), bytes_at(1) + static_cast<double>(kv_len - 1) * step);
  }
}

TEST(Work, the_multiply_of_attention_follows_the_cache_unless_the_kernel_is_known) {
  EXPECT_EQ(count_work(AttentionShape{}).math, DType::bf16);
  EXPECT_EQ(count_work(AttentionShape{.kv_dtype = DType::fp8}).math, DType::fp8);
  EXPECT_EQ(count_work(AttentionShape{.kv_dtype = DType::fp8, .math = DType::bf16}).math, DType::bf16);
  LatentAttentionShape latent{.kv_dtype = DType::fp8};
  EXPECT_EQ(count_work(latent).math, DType::bf16);  // prompts expand the latents in bf16
  latent.phase = AttentionPhase::decode;
  EXPECT_EQ(count_work(latent).math, DType::fp8);
}

TEST(Work, attention_backward_is_five_products_against_two) {
  AttentionShape shape{.heads = 4, .kv_heads = 4, .q_len = 64, .kv_len = 64};
  const double forward = flops(shape);
  shape.pass = Pass::backward;
  EXPECT_EQ(flops(shape), 2.5 * forward);
}

TEST(Work, latent_attention_decode_reads_the_latent_once_for_all_heads) {
  LatentAttentionShape shape{.phase = AttentionPhase::decode, .batch = 2, .heads = 16, .kv_len = 1000};
  const Work work = count_work(shape);
  EXPECT_EQ(work.flops.value(), 2.0 * 2 * 16 * 1000 * (576 + 512));
  EXPECT_EQ(work.activations_read.value(), 2.0 * 2 * 16 * 576 + 2.0 * 2 * 1000 * 576);
  EXPECT_EQ(work.written.value(), 2.0 * 2 * 16 * 512);
  shape.heads = 32;
  EXPECT_EQ(bytes(shape) - work.bytes().value(), 2.0 * 2 * 16 * (576 + 512));
  shape.top_k = 100;
  EXPECT_EQ(flops(shape), 2.0 * 2 * 32 * 100 * (576 + 512));
}

TEST(Work, latent_attention_prefill_expands_keys_and_values_per_head) {
  const Work work = count_work(LatentAttentionShape{.heads = 2, .q_len = 10, .kv_len = 10});
  EXPECT_EQ(work.flops.value(), 2.0 * 2 * 55 * (192 + 128));
  EXPECT_EQ(work.activations_read.value(), 2.0 * (10 * 2 * 192 + 10 * (2 * (128 + 128) + 64)));
  EXPECT_EQ(work.written.value(), 2.0 * 10 * 2 * 128);
}

TEST(Work, absorb_products_are_one_gemm_per_head) {
  const GemmShape pre{.m = 12, .n = 512, .k = 128, .batch = 16};
  const GemmShape post{.m = 12, .n = 128, .k = 512, .batch = 16};
  EXPECT_EQ(flops(LatentProjectionShape{.tokens = 12, .heads = 16}), flops(pre));
  EXPECT_EQ(bytes(LatentProjectionShape{.tokens = 12, .heads = 16}), bytes(pre));
  EXPECT_EQ(bytes(LatentProjectionShape{.post = true, .tokens = 12, .heads = 16}), bytes(post));
}

TEST(Work, one_expert_is_two_gemms_whose_intermediate_stays_on_chip) {
  const MoeShape moe{.tokens = 33, .hidden = 64, .inter = 96};
  const Work up = count_work(GemmShape{.m = 33, .n = 2 * 96, .k = 64}),
             down = count_work(GemmShape{.m = 33, .n = 64, .k = 96});
  const Work work = count_work(moe);
  EXPECT_EQ(work.flops.value(), up.flops.value() + down.flops.value());
  EXPECT_EQ(work.weights_read.value(), up.weights_read.value() + down.weights_read.value());
  EXPECT_EQ(work.activations_read, up.activations_read);
  EXPECT_EQ(work.written, down.written);
}

TEST(Work, expert_work_of_all_ranks_adds_up_to_the_whole_layer) {
  const MoeShape whole{.tokens = 4096, .hidden = 1024, .inter = 512, .top_k = 8, .experts = 64};
  MoeShape rank = whole;
  rank.ep = 8;
  EXPECT_EQ(8 * flops(rank), flops(whole));
  rank.tp = 4;
  EXPECT_EQ(32 * flops(rank), flops(whole));
  EXPECT_EQ(32 * count_work(rank).weights_read.value(), count_work(whole).weights_read.value());
}

TEST(Work, recurrent_decode_moves_the_state_in_and_out) {
  const LinearAttentionShape shape{.decode = true, .batch = 4, .key_heads = 16, .value_heads = 32};
  const double state = 4.0 * 4 * 32 * 128 * 128;
  const Work work = count_work(shape);
  EXPECT_EQ(work.flops.value(), 7.0 * 4 * 32 * 128 * 128);
  EXPECT_EQ(work.activations_read.value(), state + 2.0 * 4 * (2 * 16 + 32) * 128 + 4.0 * 4 * 64);
  EXPECT_EQ(work.written.value(), state + 2.0 * 4 * 32 * 128);
}

TEST(Work, chunked_prefill_is_linear_in_whole_chunks) {
  for (const LinearAttentionKind kind : {LinearAttentionKind::gdn, LinearAttentionKind::kda,
                                         LinearAttentionKind::mamba2, LinearAttentionKind::lightning}) {
    LinearAttentionShape shape{.kind = kind, .seq_len = 64, .key_heads = 2, .value_heads = 4};
    const double one = flops(shape);
    shape.seq_len = 640;
    EXPECT_DOUBLE_EQ(flops(shape), 10 * one);
    shape.pass = Pass::backward;
    EXPECT_DOUBLE_EQ(flops(shape), 30 * one);
  }
}

TEST(Work, a_lightning_chunk_is_counted_as_by_hand) {
  const LinearAttentionShape shape{
      .kind = LinearAttentionKind::lightning, .seq_len = 64, .key_dim = 32, .value_dim = 32};
  EXPECT_EQ(flops(shape), 2.0 * 2 * 64 * 64 * 32 + 2.0 * 2 * 64 * 32 * 32);
}

TEST(Work, a_short_convolution_touches_q_k_v_and_its_window) {
  const LinearAttentionShape shape{
      .stage = LinearAttentionStage::convolution, .seq_len = 100, .key_heads = 2, .value_heads = 4};
  const double channels = 2 * 2 * 128 + 4 * 128;
  EXPECT_EQ(bytes(shape), 2 * channels * (100 + 100 + 4 + 3));
}

TEST(Work, hyper_connections_scale_with_their_sites) {
  const Work one = count_work(HyperConnectionShape{.post = true, .tokens = 10, .hidden = 64});
  const Work two = count_work(HyperConnectionShape{.post = true, .tokens = 10, .hidden = 64, .sites = 2});
  EXPECT_EQ(two.bytes().value(), 2 * one.bytes().value());
  EXPECT_EQ(one.written.value(), 10.0 * 4 * 64 * 2);
}

TEST(Work, elementwise_kernels_move_each_tensor_once) {
  EXPECT_EQ(bytes(QuantizeShape{.m = 10, .k = 32}), 10 * 32 * 3);
  EXPECT_EQ(bytes(NormShape{.rows = 10, .width = 64}), 2 * (10 * 64 * 2 + 64));
  EXPECT_EQ(bytes(NormShape{.rows = 10, .width = 64, .adds_residual = true}), 2 * (10 * 64 * 4 + 64));
  EXPECT_EQ(bytes(ActivationShape{.rows = 10, .width = 64}), 2 * 10 * 64 * 3);
  EXPECT_EQ(bytes(ActivationShape{.rows = 10, .width = 64, .gated = false}), 2 * 10 * 64 * 2);
  EXPECT_EQ(bytes(ElementwiseShape{.elements = 100, .inputs = 2, .dtype = DType::fp32}), 4 * 300);
  EXPECT_EQ(bytes(SoftmaxShape{.rows = 3, .width = 100}), 2 * 600);
  EXPECT_EQ(bytes(RopeShape{.tokens = 5, .heads = 8, .kv_heads = 2, .rotary_dim = 64}), 2 * 5 * 64 * (10 + 1 + 10));
  EXPECT_EQ(bytes(EmbeddingShape{.tokens = 5, .width = 64}), 5 * (64 * 4 + 4));
  EXPECT_EQ(bytes(KvWriteShape{.tokens = 5, .values_per_token = 2048, .kv_dtype = DType::fp8}), 5 * 2048 * 3);
  EXPECT_EQ(bytes(SamplingShape{.rows = 2, .vocabulary = 1000}), 4 * 2000 + 16);
  EXPECT_EQ(bytes(PoolShape{.batch = 2, .channels = 3, .height = 8, .width = 8}), 2 * 6 * (64 + 16));
}

TEST(Work, a_sparse_product_reads_the_dense_rows_that_some_nonzero_touches) {
  const SparseShape full{.rows = 8, .columns = 8, .nonzeros = 64, .features = 16, .longest_row = 8};
  EXPECT_EQ(flops(full), 2 * 64 * 16);
  EXPECT_NEAR(touched_lines(8, 64, SparsePattern::uniform), 8, 0.01);
  // One nonzero for each line on average: 1 - 1/e of them are touched, of a power law fewer.
  EXPECT_NEAR(touched_lines(1e6, 1e6, SparsePattern::uniform), 0.632e6, 1e3);
  EXPECT_LT(touched_lines(1e6, 1e6, SparsePattern::power), 0.55e6);
  EXPECT_GT(touched_lines(1e6, 1e6, SparsePattern::power), 0.35e6);
  SparseShape sddmm = full;
  sddmm.product = SparseProduct::sddmm;
  EXPECT_EQ(flops(sddmm), flops(full));
}

TEST(Work, the_longest_row_follows_the_kind_of_graph) {
  // Of measured graphs: 99, 28168 and 64 nonzeros (data/measured_sparse).
  EXPECT_NEAR(expected_longest_row(65536, 65536, 4192229, SparsePattern::uniform), 99, 5);
  EXPECT_NEAR(expected_longest_row(65536, 65536, 4102065, SparsePattern::power), 28168, 4000);
  EXPECT_NEAR(expected_longest_row(65536, 65536, 3939819, SparsePattern::band), 64, 4);
  EXPECT_EQ(expected_longest_row(1, 1, 1, SparsePattern::power), 1);
}

TEST(Work, a_pointwise_convolution_is_a_gemm) {
  const ConvShape conv{.batch = 2, .in_channels = 64, .out_channels = 128, .height = 14, .width = 14};
  const GemmShape gemm{.m = 2 * 14 * 14, .n = 128, .k = 64};
  EXPECT_EQ(flops(conv), flops(gemm));
  EXPECT_EQ(bytes(conv), bytes(gemm));
}

TEST(Work, the_first_layer_of_resnet_50_is_118_million_multiply_adds) {
  const ConvShape conv{.in_channels = 3,
                       .out_channels = 64,
                       .height = 224,
                       .width = 224,
                       .kernel_height = 7,
                       .kernel_width = 7,
                       .stride = 2,
                       .padding = 3};
  EXPECT_EQ(flops(conv), 2.0 * 112 * 112 * 64 * 3 * 49);
}

TEST(Work, a_depthwise_convolution_has_one_input_channel_per_output) {
  const ConvShape conv{.in_channels = 32,
                       .out_channels = 32,
                       .height = 10,
                       .width = 10,
                       .kernel_height = 3,
                       .kernel_width = 3,
                       .padding = 1,
                       .groups = 32};
  EXPECT_EQ(flops(conv), 2.0 * 32 * 100 * 9);
}

TEST(Work, a_collective_has_none) {
  EXPECT_EQ(bytes(CollectiveShape{.bytes = 1e9}), 0);
}

}  // namespace foretoken::model_work_test
