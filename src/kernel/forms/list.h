// Which form predicts which kernel families, and how it is fitted.
#pragma once

#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "kernel/forms/form.h"

namespace foretoken {

// Strength of the pull on each kind of effect (FitEffect::strength), chosen by withholding one GPU generation at a
// time.
struct EffectStrengths {
  double common = 0.3;
  double trait = 0.01;   // of the device: "asynchronous", "stacked memory"
  double family = 0.02;  // "family ..."
  double kernel = 0.2;   // "kernel ...", "class ...", "operation ..."
  double device = 0.3;   // 0 = no such effect
  double group = 0.3;    // device and call group together
};

struct FormKind {
  std::string_view name;                        // of the calibration
  std::vector<std::string_view> families = {};  // kernel families it serves
  std::unique_ptr<Form> (*make)(Caches caches) = nullptr;
  EffectStrengths strengths = {};
  double residual_strength = 0;  // of the trees across devices; 0 = they do not port
  double huber_scale = 0.1;      // log errors beyond this count linearly
  // Only these kernel variants, which one serving stack brings along; empty = all that no other kind claims.
  std::vector<std::string_view> variants = {};
  std::vector<std::string_view> lenders = {};  // families of other forms whose rows it takes: what ports is learned
                                               // from them too, but nothing is scored or measured on them
  bool fp32 = false;                           // serves calls in plain fp32 (no TF32) and no others
  bool eager = false;         // kernels of an eager framework: any format with such a variant; fp32 without a variant
  bool ports_to_amd = false;  // else AMD's GPUs use it only with a sweep of their own
  bool amd = false;           // AMD's own kernels: all calls of its GPUs but those in plain fp32, and of no others
};

std::span<const FormKind> form_kinds();
// The kind that claims the variant of the family, else the family's general one; not those of plain fp32 nor AMD's own.
const FormKind* form_kind_of(std::string_view family, std::string_view variant = {});

// The form that predicts a call; null = none. Plain fp32 has forms of its own where they exist: its multiplies bypass
// NVIDIA's tensor cores; its other kernels are the framework's, unless the variant names another. A framework's kernels
// are so in any format. `amd`: on one of AMD's GPUs, which have kernels of their own.
const FormKind* form_kind_for(const KernelShape& shape, std::string_view variant = {}, bool amd = false);

// The family whose form predicts this call: its own, or attention_decode for a prefill of one token and for decodes of
// unequal length, which vLLM runs with the decode kernel (TensorRT-LLM does not). Empty for backward passes but
// attention's (the forms describe forward kernels) and for recurrences nobody measured.
std::string_view form_family(const KernelShape& shape, std::string_view variant = {});

}  // namespace foretoken
