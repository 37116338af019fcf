#include "kernel/forms/list.h"

#include <algorithm>

#include "kernel/forms/attention_decode_form.h"
#include "kernel/forms/attention_prefill_form.h"
#include "kernel/forms/memory_form.h"
#include "kernel/forms/mla_form.h"

namespace foretoken {

std::span<const FormKind> form_kinds() {
  // Add your line here. Strengths: common, family, kernel, device, group.
  static const FormKind kinds[] = {
      {"attention_prefill", {"attention_prefill"}, make_attention_prefill_form, {0.3, 0.02, 0.2, 0.3, 0.3}, 0.75},
      {"attention_decode", {"attention_decode"}, make_attention_decode_form, {1, 0.3, 0.03, 0.3, 0.3}, 0},
      {"attention_encoder", {"attention_encoder"}, make_attention_encoder_form, {0.1, 0.2, 0.2, 0.1, 0}, 0.75},
      {"mla_prefill", {"mla_prefill"}, make_mla_prefill_form, {0.3, 0.02, 0.2, 0, 0}, 0},
      {"mla_decode", {"mla_decode"}, make_mla_decode_form, {0.3, 0.2, 0.2, 0.3, 0.3}, 0.75},
      {"memory",
       {"quantize_fp8", "norm", "rope", "activation", "softmax", "embedding", "kv_write", "elementwise"},
       make_memory_form,
       {0.3, 0.05, 0.05, 0, 0},
       0},
  };
  return kinds;
}

const FormKind* form_kind_of(std::string_view family) {
  for (const FormKind& kind : form_kinds()) {
    if (std::find(kind.families.begin(), kind.families.end(), family) != kind.families.end()) return &kind;
  }
  return nullptr;
}

std::string_view form_family(const KernelShape& shape) {
  if (const auto* attention = std::get_if<AttentionShape>(&shape)) {
    if (attention->phase == AttentionPhase::prefill && attention->q_len == 1) return "attention_decode";
  }
  if (const auto* latent = std::get_if<LatentAttentionShape>(&shape)) {
    if (latent->phase == AttentionPhase::prefill && latent->q_len == 1) return "mla_decode";
  }
  return family_name(shape);
}

}  // namespace foretoken
