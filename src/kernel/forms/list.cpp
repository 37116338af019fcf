#include "kernel/forms/list.h"

#include <algorithm>
#include <map>

#include "kernel/forms/attention_decode_form.h"
#include "kernel/forms/attention_mixed_form.h"
#include "kernel/forms/attention_prefill_form.h"
#include "kernel/forms/conv_form.h"
#include "kernel/forms/eager_form.h"
#include "kernel/forms/eager_memory_form.h"
#include "kernel/forms/gemm_cdna_form.h"
#include "kernel/forms/gemm_form.h"
#include "kernel/forms/linear_attention_form.h"
#include "kernel/forms/memory_form.h"
#include "kernel/forms/mla_form.h"
#include "kernel/forms/mla_projection_form.h"
#include "kernel/forms/moe_cdna_form.h"
#include "kernel/forms/moe_form.h"
#include "kernel/forms/sparse_form.h"

namespace foretoken {
namespace {

// For forms fitted on warm measurements only: what is cold in a model is bounded by DRAM in KernelPredictor.
template <std::unique_ptr<Form> (*make)()>
std::unique_ptr<Form> whatever_the_caches(Caches /*caches*/) {
  return make();
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
  // Add your line here.
  constexpr EffectStrengths linear_attention{
      .common = 0.3, .trait = 0.01, .family = 0.03, .kernel = 0.1, .device = 0.3, .group = 0.3};
  static const FormKind kinds[] = {
      {.name = "gemm",
       .families = {"gemm"},
       .make = make_gemm_form,
       .strengths = {.common = 0.1, .trait = 0.01, .family = 0.1, .kernel = 0.1, .device = 0.1, .group = 0.005},
       .residual_strength = 0.75,
       .huber_scale = 0.05},
      {.name = "mla_bmm",
       .families = {"mla_bmm"},
       .make = make_mla_projection_form,
       .strengths = {.common = 0.3, .trait = 0.1, .family = 0.1, .kernel = 0.1, .device = 0.3, .group = 0.1},
       .residual_strength = 0.5,
       .huber_scale = 0.05},
      {.name = "moe",
       .families = {"moe"},
       .make = whatever_the_caches<make_moe_form>,
       .strengths = {.common = 0.1, .trait = 0.01, .family = 0.2, .kernel = 0.2, .device = 0.02, .group = 0.003},
       .residual_strength = 0.5,
       .huber_scale = 0.05},
      {.name = "moe_received",
       .families = {"moe"},
       .make = whatever_the_caches<make_moe_form>,
       .strengths = {.common = 0.1, .trait = 0.01, .family = 0.2, .kernel = 0.2, .device = 0.02, .group = 0.003},
       .residual_strength = 0.5,
       .huber_scale = 0.05,
       .variants = {"deepgemm_contiguous", "deepgemm_masked"}},
      {.name = "attention_prefill",
       .families = {"attention_prefill"},
       .make = whatever_the_caches<make_attention_prefill_form>,
       .strengths = {.common = 0.3, .trait = 0.01, .family = 0.02, .kernel = 0.2, .device = 0.3, .group = 0.3},
       .residual_strength = 0.75},
      {.name = "attention_decode",
       .families = {"attention_decode"},
       .make = whatever_the_caches<make_attention_decode_form>,
       .strengths = {.common = 1, .trait = 0.01, .family = 0.3, .kernel = 0.03, .device = 0.3, .group = 0.3}},
      {.name = "attention_mixed",
       .families = {"attention_mixed"},
       .make = whatever_the_caches<make_attention_mixed_form>,
       .strengths = {.common = 0.3, .trait = 0.01, .family = 0.02, .kernel = 0.2, .device = 0.3, .group = 0.3},
       .residual_strength = 0.75,
       .lenders = {"attention_prefill"}},
      {.name = "attention_encoder",
       .families = {"attention_encoder"},
       .make = whatever_the_caches<make_attention_encoder_form>,
       .strengths = {.common = 0.1, .trait = 0.01, .family = 0.2, .kernel = 0.2, .device = 0.1, .group = 0},
       .residual_strength = 0.75},
      {.name = "attention_backward",
       .families = {"attention_backward"},
       .make = whatever_the_caches<make_attention_backward_form>,
       .strengths = {.common = 0.3, .trait = 0.01, .family = 0.02, .kernel = 0.2, .device = 0.3, .group = 0.3}},
      {.name = "mla_prefill",
       .families = {"mla_prefill"},
       .make = whatever_the_caches<make_mla_prefill_form>,
       .strengths = {.common = 0.3, .trait = 0.01, .family = 0.02, .kernel = 0.2, .device = 0, .group = 0}},
      {.name = "mla_decode",
       .families = {"mla_decode"},
       .make = whatever_the_caches<make_mla_decode_form>,
       .strengths = {.common = 0.3, .trait = 0.01, .family = 0.2, .kernel = 0.2, .device = 0.3, .group = 0.3},
       .residual_strength = 0.75},
      {.name = "memory",
       .families = {"quantize_fp8", "norm", "rope", "activation", "softmax", "embedding", "kv_write", "elementwise",
                    "sampling"},
       .make = whatever_the_caches<make_memory_form>,
       .strengths = {.common = 0.3, .trait = 0.01, .family = 0.05, .kernel = 0.05, .device = 0, .group = 0}},
      // One form, but fitted by family: the families scatter too differently to share intervals.
      {.name = "linattn_gdn",
       .families = {"linattn_gdn"},
       .make = whatever_the_caches<make_linear_attention_form>,
       .strengths = linear_attention},
      {.name = "linattn_kda",
       .families = {"linattn_kda"},
       .make = whatever_the_caches<make_linear_attention_form>,
       .strengths = linear_attention},
      {.name = "linattn_mamba2",
       .families = {"linattn_mamba2"},
       .make = whatever_the_caches<make_linear_attention_form>,
       .strengths = linear_attention},
      {.name = "mhc",
       .families = {"mhc"},
       .make = whatever_the_caches<make_memory_form>,
       .strengths = {.common = 0.1, .trait = 0.01, .family = 0.05, .kernel = 0.02, .device = 0.1, .group = 0.1}},
      // Measured on one device, in formats that share constants but for a few: the device has no effects of its own.
      {.name = "spmm",
       .families = {"spmm"},
       .make = whatever_the_caches<make_spmm_form>,
       .strengths = {.common = 0.01, .trait = 0.01, .family = 0.1, .kernel = 0.05, .device = 0, .group = 0}},
      {.name = "sddmm",
       .families = {"sddmm"},
       .make = whatever_the_caches<make_sddmm_form>,
       .strengths = {.common = 0.01, .trait = 0.01, .family = 0.1, .kernel = 0.05, .device = 0, .group = 0}},
      // TensorRT-LLM's kernels under the names its measurements carry: fitted beside vLLM's they bent both.
      {.name = "gemm_trtllm",
       .families = {"gemm"},
       .make = make_gemm_form,
       .strengths = {.common = 0.3, .trait = 0.3, .family = 0.1, .kernel = 0.1, .device = 0.1, .group = 0.1},
       .residual_strength = 0.5,
       .huber_scale = 0.05,
       .variants = {"trtllm", "deepgemm", "woq", "smoothquant"}},
      {.name = "attention_prefill_trtllm",
       .families = {"attention_prefill"},
       .make = whatever_the_caches<make_attention_prefill_form>,
       .strengths = {.common = 0.3, .trait = 0.01, .family = 0.02, .kernel = 0.2, .device = 0.3, .group = 0.3},
       .residual_strength = 0.75,
       .variants = {"trtllm", "flashinfer"}},
      {.name = "attention_decode_trtllm",
       .families = {"attention_decode"},
       .make = whatever_the_caches<make_attention_decode_form>,
       .strengths = {.common = 0.3, .trait = 0.01, .family = 0.03, .kernel = 0.03, .device = 0.03, .group = 0.03},
       .residual_strength = 0.75,
       .variants = {"trtllm", "flashinfer"}},
      {.name = "gemm_fp32",
       .families = {"gemm"},
       .make = make_gemm_fp32_form,
       .strengths = {.common = 0.1, .trait = 0.01, .family = 0.1, .kernel = 0.05, .device = 0.03, .group = 0.01},
       .residual_strength = 0.5,
       .fp32 = true,
       .ports_to_amd = true},
      {.name = "conv_fp32",
       .families = {"conv"},
       .make = make_conv_fp32_form,
       .strengths = {.common = 0.1, .trait = 0.01, .family = 0.1, .kernel = 0.05, .device = 0.03, .group = 0.01},
       .residual_strength = 0.5,
       .fp32 = true,
       .ports_to_amd = true},
      {.name = "eager",
       .families = {"norm", "activation", "softmax", "elementwise"},
       .make = make_eager_memory_form,
       .strengths = {.common = 0.1, .trait = 0.01, .family = 0.05, .kernel = 0.02, .device = 0.03, .group = 0},
       .residual_strength = 0.5,
       .huber_scale = 0.05,
       .fp32 = true,
       .eager = true,
       .ports_to_amd = true},
      {.name = "gemm_cdna",
       .families = {"gemm"},
       .make = make_gemm_cdna_form,
       .strengths = {.common = 0.03, .trait = 0.01, .family = 0.1, .kernel = 0.01, .device = 0.01, .group = 0.01},
       .residual_strength = 0.5,
       .amd = true},
      {.name = "moe_cdna",
       .families = {"moe"},
       .make = make_moe_cdna_form,
       .strengths = {.common = 0.03, .trait = 0.01, .family = 0.1, .kernel = 0.03, .device = 0.03, .group = 0.03},
       .amd = true},
  };
  return kinds;
}

namespace {

// In the order of the list. Asked for every kernel of every step, so the names of all kinds are not gone through.
std::span<const FormKind* const> kinds_serving(std::string_view family) {
  static const std::map<std::string_view, std::vector<const FormKind*>> by_family = [] {
    std::map<std::string_view, std::vector<const FormKind*>> kinds;
    for (const FormKind& kind : form_kinds()) {
      for (const std::string_view served : kind.families) kinds[served].push_back(&kind);
    }
    return kinds;
  }();
  const auto found = by_family.find(family);
  return found != by_family.end() ? std::span<const FormKind* const>(found->second)
                                  : std::span<const FormKind* const>();
}

}  // namespace

const FormKind* form_kind_of(std::string_view family, std::string_view variant) {
  const FormKind* general = nullptr;
  for (const FormKind* kind : kinds_serving(family)) {
    if (kind->fp32 || kind->amd) continue;
    if (std::find(kind->variants.begin(), kind->variants.end(), variant) != kind->variants.end()) return kind;
    if (kind->variants.empty()) general = kind;
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
    // The first token of a prompt has no cache to read: the kernel of prompts takes it, a padded tile to each head.
    if (latent->phase == AttentionPhase::prefill && latent->q_len == 1 && latent->kv_len > 1) return "mla_decode";
  }
  return family_name(shape);
}

const FormKind* form_kind_for(const KernelShape& shape, std::string_view variant, bool amd) {
  const std::string_view family = form_family(shape, variant);
  const std::span<const FormKind* const> kinds = kinds_serving(family);
  if (amd && !is_fp32(shape)) {
    const auto own = std::find_if(kinds.begin(), kinds.end(), [](const FormKind* kind) { return kind->amd; });
    if (own != kinds.end()) return *own;
  }
  for (const FormKind* kind : kinds) {
    if (!kind->fp32) continue;
    const bool is_framework = is_framework_kernel(variant), is_unknown = variant.empty();
    if (kind->eager ? is_framework || (is_unknown && is_fp32(shape)) : is_fp32(shape)) return kind;
  }
  return form_kind_of(family, variant);
}

}  // namespace foretoken
