#include "model/shape_hash.h"

#include <cstdint>

namespace foretoken {
namespace {

class SizeMix {
 public:
  template <class... Sizes>
  SizeMix& operator()(Sizes... sizes) {
    (mix(static_cast<uint64_t>(sizes)), ...);
    return *this;
  }
  size_t value() const { return static_cast<size_t>(state_ ^ state_ >> 32U); }

 private:
  void mix(uint64_t size) { state_ = (state_ ^ size) * 0x9e3779b97f4a7c15U, state_ ^= state_ >> 29U; }
  uint64_t state_ = 0x243f6a8885a308d3U;
};

void mix_sizes(const GemmShape& s, SizeMix& mix) {
  mix(s.m, s.n, s.k, s.batch);
}
void mix_sizes(const AttentionShape& s, SizeMix& mix) {
  mix(s.batch, s.heads, s.kv_heads, s.head_dim, s.q_len, s.kv_len, s.window);
}
void mix_sizes(const MixedAttentionShape& s, SizeMix& mix) {
  for (const MixedAttentionShape::Prompts& one : s.prompts) mix(one.count, one.q_len, one.kv_len);
  mix(s.decodes, s.decode_keys, s.longest_decode, s.heads, s.kv_heads, s.head_dim, s.window);
}
void mix_sizes(const LatentAttentionShape& s, SizeMix& mix) {
  mix(s.batch, s.heads, s.q_len, s.kv_len, s.latent_dim, s.top_k);
}
void mix_sizes(const LatentProjectionShape& s, SizeMix& mix) {
  mix(s.tokens, s.heads, s.latent_dim, s.head_dim);
}
void mix_sizes(const MoeShape& s, SizeMix& mix) {
  mix(s.tokens, s.hidden, s.inter, s.top_k, s.experts, s.tp, s.ep);
}
void mix_sizes(const QuantizeShape& s, SizeMix& mix) {
  mix(s.m, s.k);
}
void mix_sizes(const LinearAttentionShape& s, SizeMix& mix) {
  mix(s.batch, s.seq_len, s.key_heads, s.key_dim, s.value_heads, s.value_dim);
}
void mix_sizes(const HyperConnectionShape& s, SizeMix& mix) {
  mix(s.tokens, s.streams, s.hidden, s.sites);
}
void mix_sizes(const NormShape& s, SizeMix& mix) {
  mix(s.rows, s.width);
}
void mix_sizes(const RopeShape& s, SizeMix& mix) {
  mix(s.tokens, s.heads, s.kv_heads, s.rotary_dim);
}
void mix_sizes(const ActivationShape& s, SizeMix& mix) {
  mix(s.rows, s.width);
}
void mix_sizes(const ElementwiseShape& s, SizeMix& mix) {
  mix(s.elements, s.inputs, s.outputs);
}
void mix_sizes(const SoftmaxShape& s, SizeMix& mix) {
  mix(s.rows, s.width);
}
void mix_sizes(const EmbeddingShape& s, SizeMix& mix) {
  mix(s.tokens, s.width);
}
void mix_sizes(const KvWriteShape& s, SizeMix& mix) {
  mix(s.tokens, s.values_per_token);
}
void mix_sizes(const SamplingShape& s, SizeMix& mix) {
  mix(s.rows, s.vocabulary);
}
void mix_sizes(const ConvShape& s, SizeMix& mix) {
  mix(s.batch, s.in_channels, s.out_channels, s.height, s.width, s.kernel_height, s.kernel_width, s.stride);
}
void mix_sizes(const PoolShape& s, SizeMix& mix) {
  mix(s.batch, s.channels, s.height, s.width, s.kernel, s.stride);
}
void mix_sizes(const SparseShape& s, SizeMix& mix) {
  mix(s.rows, s.columns, s.nonzeros, s.features, s.longest_row);
}
void mix_sizes(const CollectiveShape& s, SizeMix& mix) {
  mix(s.ranks, s.bytes);
}

}  // namespace

size_t shape_hash(const KernelShape& shape) {
  SizeMix mix;
  mix(shape.index());
  std::visit([&](const auto& one) { mix_sizes(one, mix); }, shape);
  return mix.value();
}

}  // namespace foretoken
