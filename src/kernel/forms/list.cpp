#include "kernel/forms/list.h"

#include <algorithm>

#include "kernel/forms/attention_decode_form.h"
#include "kernel/forms/attention_mixed_form.h"
#include "kernel/forms/attention_prefill_form.h"
#include "kernel/forms/conv_form.h"
#include "kernel/forms/eager_form.h"
#include "kernel/forms/eager_memory_form.h"
#include "kernel/forms/gemm_form.h"
#include "kernel/forms/linear_attention_form.h"
#include "kernel/forms/memory_form.h"
#include "kernel/forms/mla_form.h"
#include "kernel/forms/mla_projection_form.h"
#include "kernel/forms/moe_form.h"

namespace foretoken {
namespace {

// For forms fitted on warm measurements only: what is cold in a model is bounded by DRAM in KernelPredictor.
template <std::unique_ptr<Form> (*make)()>
std::unique_ptr<Form> whatever_the_caches(Caches /*caches*/) {
  return make();
}

bool is_backward(const KernelShape& shape) {
  return std::visit(
      [](const auto& s) {
        if constexpr (requires { s.pass; }) return s.pass == Pass::backward;
        return false;
      },
      shape);
}

bool is_fp32(const KernelShape& shape) {
  return std::visit(
      [](const auto& s) {
        if constexpr (requires { s.scheme; }) return s.scheme == Scheme::fp32;
        if constexpr (requires { s.dtype; }) return s.dtype == DType::fp32;
        return false;
      },
      shape);
}

}  // namespace

std::span<const FormKind> form_kinds() {
  // Add your line here. Strengths: common, trait, family, kernel, device, group.
  constexpr EffectStrengths linear_attention{0.3, 0.01, 0.03, 0.1, 0.3, 0.3};
  static const FormKind kinds[] = {
      {"gemm", {"gemm"}, make_gemm_form, {0.1, 0.01, 0.1, 0.1, 0.03, 0.005}, 0.5, 0.05},
      {"mla_bmm", {"mla_bmm"}, make_mla_projection_form, {0.3, 0.1, 0.1, 0.1, 0.3, 0.1}, 0.5, 0.05},
      {"moe", {"moe"}, whatever_the_caches<make_moe_form>, {0.1, 0.01, 0.2, 0.2, 0.02, 0.003}, 0.5, 0.05},
      {"attention_prefill",
       {"attention_prefill"},
       whatever_the_caches<make_attention_prefill_form>,
       {0.3, 0.01, 0.02, 0.2, 0.3, 0.3},
       0.75},
      {"attention_decode",
       {"attention_decode"},
       whatever_the_caches<make_attention_decode_form>,
       {1, 0.01, 0.3, 0.03, 0.3, 0.3},
       0},
      {"attention_mixed",
       {"attention_mixed"},
       whatever_the_caches<make_attention_mixed_form>,
       {0.3, 0.01, 0.02, 0.2, 0.3, 0.3},
       0.75,
       0.1,
       {},
       {"attention_prefill"}},
      {"attention_encoder",
       {"attention_encoder"},
       whatever_the_caches<make_attention_encoder_form>,
       {0.1, 0.01, 0.2, 0.2, 0.1, 0},
       0.75},
      {"attention_backward",
       {"attention_backward"},
       whatever_the_caches<make_attention_backward_form>,
       {0.3, 0.01, 0.02, 0.2, 0.3, 0.3},
       0},
      {"mla_prefill", {"mla_prefill"}, whatever_the_caches<make_mla_prefill_form>, {0.3, 0.01, 0.02, 0.2, 0, 0}, 0},
      {"mla_decode", {"mla_decode"}, whatever_the_caches<make_mla_decode_form>, {0.3, 0.01, 0.2, 0.2, 0.3, 0.3}, 0.75},
      {"memory",
       {"quantize_fp8", "norm", "rope", "activation", "softmax", "embedding", "kv_write", "elementwise", "sampling"},
       whatever_the_caches<make_memory_form>,
       {0.3, 0.01, 0.05, 0.05, 0, 0},
       0},
      // One form, but fitted by family: the families scatter too differently to share intervals.
      {"linattn_gdn", {"linattn_gdn"}, whatever_the_caches<make_linear_attention_form>, linear_attention, 0},
      {"linattn_kda", {"linattn_kda"}, whatever_the_caches<make_linear_attention_form>, linear_attention, 0},
      {"linattn_mamba2", {"linattn_mamba2"}, whatever_the_caches<make_linear_attention_form>, linear_attention, 0},
      {"mhc", {"mhc"}, whatever_the_caches<make_memory_form>, {0.1, 0.01, 0.05, 0.02, 0.1, 0.1}, 0},
      // TensorRT-LLM's kernels under the names its measurements carry: fitted beside vLLM's they bent both.
      {"gemm_trtllm",
       {"gemm"},
       make_gemm_form,
       {0.3, 0.3, 0.1, 0.1, 0.1, 0.1},
       0.5,
       0.05,
       {"trtllm", "deepgemm", "woq", "smoothquant"}},
      {"attention_prefill_trtllm",
       {"attention_prefill"},
       whatever_the_caches<make_attention_prefill_form>,
       {0.3, 0.01, 0.02, 0.2, 0.3, 0.3},
       0.75,
       0.1,
       {"trtllm", "flashinfer"}},
      {"attention_decode_trtllm",
       {"attention_decode"},
       whatever_the_caches<make_attention_decode_form>,
       {0.3, 0.01, 0.03, 0.03, 0.03, 0.03},
       0.75,
       0.1,
       {"trtllm", "flashinfer"}},
      {"gemm_fp32",
       {"gemm"},
       make_gemm_fp32_form,
       {0.1, 0.01, 0.1, 0.05, 0.03, 0.01},
       0.5,
       0.1,
       {},
       {},
       true,
       false,
       true},
      {"conv_fp32",
       {"conv"},
       make_conv_fp32_form,
       {0.1, 0.01, 0.1, 0.05, 0.03, 0.01},
       0.5,
       0.1,
       {},
       {},
       true,
       false,
       true},
      {"eager",
       {"norm", "activation", "softmax", "elementwise"},
       make_eager_memory_form,
       {0.1, 0.01, 0.05, 0.02, 0.03, 0},
       0.5,
       0.05,
       {},
       {},
       true,
       true,
       true},
  };
  return kinds;
}

const FormKind* form_kind_of(std::string_view family, std::string_view variant) {
  const auto holds = [](const std::vector<std::string_view>& names, std::string_view name) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  const FormKind* general = nullptr;
  for (const FormKind& kind : form_kinds()) {
    if (kind.fp32 || !holds(kind.families, family)) continue;
    if (holds(kind.variants, variant)) return &kind;
    if (kind.variants.empty()) general = &kind;
  }
  return general;
}

std::string_view form_family(const KernelShape& shape, std::string_view variant) {
  if (is_backward(shape)) return std::holds_alternative<AttentionShape>(shape) ? family_name(shape) : "";
  if (const auto* linear = std::get_if<LinearAttentionShape>(&shape)) {
    if (!linear_attention_is_known(*linear)) return {};
  }
  if (const auto* attention = std::get_if<AttentionShape>(&shape)) {
    const bool one_token = attention->phase == AttentionPhase::prefill && attention->q_len == 1;
    if (one_token && form_kind_of("attention_prefill", variant)->variants.empty()) return "attention_decode";
  }
  if (const auto* mixed = std::get_if<MixedAttentionShape>(&shape)) {
    if (mixed->prompt_count() == 0) return "attention_decode";
  }
  if (const auto* latent = std::get_if<LatentAttentionShape>(&shape)) {
    if (latent->phase == AttentionPhase::prefill && latent->q_len == 1) return "mla_decode";
  }
  return family_name(shape);
}

const FormKind* form_kind_for(const KernelShape& shape, std::string_view variant) {
  const std::string_view family = form_family(shape, variant);
  for (const FormKind& kind : form_kinds()) {
    if (!kind.fp32 || std::find(kind.families.begin(), kind.families.end(), family) == kind.families.end()) continue;
    const bool is_framework = is_framework_kernel(variant), is_unknown = variant.empty();
    if (kind.eager ? is_framework || (is_unknown && is_fp32(shape)) : is_fp32(shape)) return &kind;
  }
  return form_kind_of(family, variant);
}

}  // namespace foretoken
