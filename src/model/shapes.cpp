#include "model/shapes.h"

#include <algorithm>

namespace foretoken {
namespace {

struct FamilyName {
  std::string_view operator()(const GemmShape&) const { return "gemm"; }
  std::string_view operator()(const AttentionShape& shape) const {
    if (shape.pass == Pass::backward) return "attention_backward";
    switch (shape.phase) {
      case AttentionPhase::prefill:
        return "attention_prefill";
      case AttentionPhase::decode:
        return "attention_decode";
      case AttentionPhase::encoder:
        break;
    }
    return "attention_encoder";
  }
  std::string_view operator()(const MixedAttentionShape&) const { return "attention_mixed"; }
  std::string_view operator()(const LatentAttentionShape& shape) const {
    return shape.phase == AttentionPhase::decode ? "mla_decode" : "mla_prefill";
  }
  std::string_view operator()(const LatentProjectionShape&) const { return "mla_bmm"; }
  std::string_view operator()(const MoeShape&) const { return "moe"; }
  std::string_view operator()(const QuantizeShape&) const { return "quantize_fp8"; }
  std::string_view operator()(const LinearAttentionShape& shape) const {
    switch (shape.kind) {
      case LinearAttentionKind::gdn:
        return "linattn_gdn";
      case LinearAttentionKind::kda:
        return "linattn_kda";
      case LinearAttentionKind::mamba2:
        return "linattn_mamba2";
      case LinearAttentionKind::lightning:
        break;
    }
    return "linattn_lightning";
  }
  std::string_view operator()(const HyperConnectionShape&) const { return "mhc"; }
  std::string_view operator()(const NormShape&) const { return "norm"; }
  std::string_view operator()(const RopeShape&) const { return "rope"; }
  std::string_view operator()(const ActivationShape&) const { return "activation"; }
  std::string_view operator()(const ElementwiseShape&) const { return "elementwise"; }
  std::string_view operator()(const SoftmaxShape&) const { return "softmax"; }
  std::string_view operator()(const EmbeddingShape&) const { return "embedding"; }
  std::string_view operator()(const KvWriteShape&) const { return "kv_write"; }
  std::string_view operator()(const SamplingShape&) const { return "sampling"; }
  std::string_view operator()(const ConvShape&) const { return "conv"; }
  std::string_view operator()(const PoolShape&) const { return "pool"; }
  std::string_view operator()(const SparseShape& shape) const {
    return shape.product == SparseProduct::spmm ? "spmm" : "sddmm";
  }
  std::string_view operator()(const CollectiveShape&) const { return "collective"; }
};

}  // namespace

void MixedAttentionShape::add_prompts(int64_t count, int64_t q_len, int64_t kv_len) {
  if (count <= 0) return;
  for (Prompts& kind : prompts) {
    if (kind.count == 0 || (kind.q_len == q_len && kind.kv_len == kv_len)) {
      kind = {.count = kind.count + count, .q_len = q_len, .kv_len = kv_len};
      return;
    }
  }
  Prompts& last = prompts.back();
  const int64_t together = last.count + count;
  const auto mean = [&](int64_t a, int64_t b) { return (a * last.count + b * count + together / 2) / together; };
  last = {.count = together, .q_len = mean(last.q_len, q_len), .kv_len = mean(last.kv_len, kv_len)};
}

void MixedAttentionShape::add_decodes(int64_t count, int64_t kv_len) {
  if (count <= 0) return;
  decodes += count;
  decode_keys += count * kv_len;
  longest_decode = std::max(longest_decode, kv_len);
}

int64_t MixedAttentionShape::prompt_count() const {
  int64_t sum = 0;
  for (const Prompts& kind : prompts) sum += kind.count;
  return sum;
}

namespace {

// A shape of no sequences, with the heads and formats of another.
template <class Shape, class Other>
Shape with_heads_of(const Other& shape) {
  return {.heads = shape.heads,
          .kv_heads = shape.kv_heads,
          .head_dim = shape.head_dim,
          .value_dim = shape.value_dim,
          .window = shape.window,
          .dtype = shape.dtype,
          .kv_dtype = shape.kv_dtype,
          .writes_kv = shape.writes_kv,
          .math = shape.math};
}

}  // namespace

MixedAttentionShape empty_batch_like(const AttentionShape& shape) {
  return with_heads_of<MixedAttentionShape>(shape);
}

AttentionShape equal_decodes(const MixedAttentionShape& shape) {
  AttentionShape call = with_heads_of<AttentionShape>(shape);
  call.phase = AttentionPhase::decode;
  call.batch = std::max<int64_t>(1, shape.decodes);
  call.kv_len = std::max<int64_t>(1, (shape.decode_keys + call.batch / 2) / call.batch);
  return call;
}

AttentionParts equal_parts(const MixedAttentionShape& shape) {
  AttentionParts parts;
  AttentionShape call = with_heads_of<AttentionShape>(shape);
  const auto add = [&](int64_t count, int64_t q_len, int64_t kv_len) {
    if (count <= 0) return;
    call.batch = count;
    call.q_len = q_len;
    call.kv_len = kv_len;
    parts.calls[parts.count++] = call;
  };
  for (const MixedAttentionShape::Prompts& kind : shape.prompts) add(kind.count, kind.q_len, kind.kv_len);
  if (shape.decodes > 0) {
    call.phase = AttentionPhase::decode;
    const int64_t shorter = shape.decode_keys / shape.decodes, longer = shape.decode_keys % shape.decodes;
    add(shape.decodes - longer, 1, shorter);
    add(longer, 1, shorter + 1);
  }
  return parts;
}

MixedAttentionShape prompts_of(MixedAttentionShape batch) {
  batch.decodes = batch.decode_keys = batch.longest_decode = 0;
  return batch;
}

MixedAttentionShape decodes_of(MixedAttentionShape batch) {
  batch.prompts = {};
  return batch;
}

KernelShape simplest_shape(const MixedAttentionShape& shape) {
  const AttentionParts parts = equal_parts(shape);
  const bool unequal = shape.decodes > 0 && shape.longest_decode * shape.decodes != shape.decode_keys;
  if (parts.count != 1 || unequal) return shape;
  return parts.calls[0];
}

std::string_view collective_kind_name(CollectiveKind kind) {
  return collective_kind_names[static_cast<size_t>(kind)];
}

std::optional<CollectiveKind> collective_kind_from_name(std::string_view name) {
  for (size_t i = 0; i < std::size(collective_kind_names); ++i) {
    if (collective_kind_names[i] == name) return static_cast<CollectiveKind>(i);
  }
  return std::nullopt;
}

bool is_backward(const KernelShape& shape) {
  return std::visit(
      [](const auto& call) {
        if constexpr (requires { call.pass; }) return call.pass == Pass::backward;
        return false;
      },
      shape);
}

std::string_view family_name(const KernelShape& shape) {
  return std::visit(FamilyName{}, shape);
}

}  // namespace foretoken
