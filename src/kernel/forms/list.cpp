#include "kernel/forms/list.h"

#include <algorithm>

#include "kernel/forms/attention_decode_form.h"
#include "kernel/forms/attention_prefill_form.h"
#include "kernel/forms/conv_form.h"
#include "kernel/forms/eager_form.h"
#include "kernel/forms/eager_memory_form.h"
#include "kernel/forms/gemm_form.h"
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
  static const FormKind kinds[] = {
      {"gemm", {"gemm"}, make_gemm_form, {0.1, 0.01, 0.1, 0.1, 0.03, 0.005}, 0.5, 0.05},
      {"mla_bmm", {"mla_bmm"}, make_mla_projection_form, {0.1, 0.01, 0.1, 0.1, 0.03, 0.005}, 0.5, 0.05},
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
      {"attention_encoder",
       {"attention_encoder"},
       whatever_the_caches<make_attention_encoder_form>,
       {0.1, 0.01, 0.2, 0.2, 0.1, 0},
       0.75},
      {"mla_prefill", {"mla_prefill"}, whatever_the_caches<make_mla_prefill_form>, {0.3, 0.01, 0.02, 0.2, 0, 0}, 0},
      {"mla_decode", {"mla_decode"}, whatever_the_caches<make_mla_decode_form>, {0.3, 0.01, 0.2, 0.2, 0.3, 0.3}, 0.75},
      {"memory",
       {"quantize_fp8", "norm", "rope", "activation", "softmax", "embedding", "kv_write", "elementwise", "sampling"},
       whatever_the_caches<make_memory_form>,
       {0.3, 0.01, 0.05, 0.05, 0, 0},
       0},
      {"gemm_fp32", {"gemm"}, make_gemm_fp32_form, {0.1, 0.01, 0.1, 0.05, 0.03, 0.01}, 0.5, 0.1, true, false, true},
      {"conv_fp32", {"conv"}, make_conv_fp32_form, {0.1, 0.01, 0.1, 0.05, 0.03, 0.01}, 0.5, 0.1, true, false, true},
      {"eager",
       {"norm", "activation", "softmax", "elementwise"},
       make_eager_memory_form,
       {0.1, 0.01, 0.05, 0.02, 0.03, 0},
       0.5,
       0.05,
       true,
       true,
       true},
  };
  return kinds;
}

namespace {

const FormKind* find_kind(std::string_view family, bool fp32) {
  for (const FormKind& kind : form_kinds()) {
    if (kind.fp32 != fp32) continue;
    if (std::find(kind.families.begin(), kind.families.end(), family) != kind.families.end()) return &kind;
  }
  return nullptr;
}

}  // namespace

const FormKind* form_kind_of(std::string_view family) {
  return find_kind(family, false);
}

std::string_view form_family(const KernelShape& shape) {
  if (is_backward(shape)) return {};
  if (const auto* attention = std::get_if<AttentionShape>(&shape)) {
    if (attention->phase == AttentionPhase::prefill && attention->q_len == 1) return "attention_decode";
  }
  if (const auto* latent = std::get_if<LatentAttentionShape>(&shape)) {
    if (latent->phase == AttentionPhase::prefill && latent->q_len == 1) return "mla_decode";
  }
  return family_name(shape);
}

const FormKind* form_kind_for(const KernelShape& shape, std::string_view variant) {
  const std::string_view family = form_family(shape);
  const FormKind* kind = find_kind(family, true);
  if (kind != nullptr) {
    const bool is_framework = is_framework_kernel(variant), is_unknown = variant.empty();
    if (kind->eager ? is_framework || (is_unknown && is_fp32(shape)) : is_fp32(shape)) return kind;
  }
  return find_kind(family, false);
}

}  // namespace foretoken
