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
  double family = 0.02;  // "family ...", traits such as "asynchronous"
  double kernel = 0.2;   // "kernel ...", "class ...", "operation ..."
  double device = 0.3;   // 0 = no such effect
  double group = 0.3;    // device and call group together
};

struct FormKind {
  std::string_view name;                   // of the calibration
  std::vector<std::string_view> families;  // kernel families it serves
  std::unique_ptr<Form> (*make)();
  EffectStrengths strengths;
  double residual_strength = 0;  // of the trees across devices; 0 = they do not port
};

std::span<const FormKind> form_kinds();
const FormKind* form_kind_of(std::string_view family);

// The family whose form predicts this call: its own, or attention_decode for a prefill of one token, which engines run
// with the decode kernel.
std::string_view form_family(const KernelShape& shape);

}  // namespace foretoken
