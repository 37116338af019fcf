#include "model/shapes.h"

namespace foretoken {
namespace {

struct FamilyName {
  std::string_view operator()(const GemmShape&) const { return "gemm"; }
  std::string_view operator()(const AttentionShape& shape) const {
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
  std::string_view operator()(const CollectiveShape&) const { return "collective"; }
};

}  // namespace

std::string_view family_name(const KernelShape& shape) {
  return std::visit(FamilyName{}, shape);
}

}  // namespace foretoken
