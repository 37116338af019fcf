#include "compose/device_formats.h"

#include <algorithm>
#include <vector>

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"
#include "hardware/generation.h"

namespace foretoken {
namespace {

std::vector<std::string_view> formats_of(const Device& device) {
  std::vector<std::string_view> names;
  for (int type = 0; type < dtype_count; ++type) {
    if (device.dense_peak[static_cast<size_t>(type)]) names.push_back(dtype_name(static_cast<DType>(type)));
  }
  return names;
}

std::string_view instead_of(DType math) {
  return math == DType::fp4 ? "int4_wo or w4a16_mxfp4 (4-bit weights, multiplied in 16 bits)"
                            : "int8_wo (8-bit weights, multiplied in 16 bits)";
}

}  // namespace

bool multiplies_in(const Device& device, DType math) {
  if (math != DType::fp8 && math != DType::fp4) return true;
  // Of a device whose sheet has no arithmetic at all nothing is known.
  return formats_of(device).empty() || device.dense_peak[static_cast<size_t>(math)].has_value();
}

// NVFP4 has an fp8 scale for every 16 values; the fp4 units of others take a power of two for 32 (MXFP4).
bool multiplies_in(const Device& device, Scheme scheme) {
  const bool lacks_scales = scheme == Scheme::nvfp4 && !formats_of(device).empty() && device.vendor != "NVIDIA";
  return multiplies_in(device, facts(scheme).math) && !lacks_scales;
}

bool keeps_cache_in(const Device& device, DType type) {
  if (multiplies_in(device, type)) return true;
  const bool widens_fp8 =
      device.kind == DeviceKind::tpu || kernel_generation(device).cuda_capability >= ampere_capability;
  return type == DType::fp8 && widens_fp8;
}

std::optional<Scheme> weight_only_form(Scheme scheme, const Device& device) {
  if (!kernel_generation(device).weight_only_kernels) return std::nullopt;
  switch (scheme) {
    case Scheme::fp8:
    case Scheme::fp8_block:
      return Scheme::int8_wo;  // as many bytes, and the same multiply
    case Scheme::nvfp4:
    case Scheme::mxfp4:
    case Scheme::mxfp4_mxfp8:
      return Scheme::int4_wo;  // Marlin's kernels, which differ from those of MXFP4 checkpoints
    default:
      return std::nullopt;
  }
}

bool loads_on(const Model& model, const Device& device) {
  const auto loads = [&](Scheme scheme) {
    return multiplies_in(device, scheme) || weight_only_form(scheme, device).has_value();
  };
  return loads(model.scheme) && loads(model.mixer_scheme()) && (!model.has_experts() || loads(model.expert_scheme));
}

void check_multiplies_in(const std::string& field, DType math, const Device& device, std::string_view asked) {
  if (multiplies_in(device, math)) return;
  throw InputError({.field = field,
                    .value = printable(asked),
                    .expected = fmt::format("a format that {} supports ({}), or {}", device.name,
                                            fmt::join(formats_of(device), ", "), instead_of(math))});
}

void check_multiplies_in(const std::string& field, Scheme scheme, const Device& device, std::string_view asked) {
  check_multiplies_in(field, facts(scheme).math, device, asked);
  if (multiplies_in(device, scheme)) return;
  throw InputError({.field = field,
                    .value = printable(asked),
                    .expected = fmt::format("w4a4_mxfp4 (MXFP4), the 4-bit format that {} multiplies in, or {}",
                                            device.name, instead_of(DType::fp4))});
}

Model run_on(Model model, const Device& device) {
  std::vector<Scheme> changed;
  const auto fitted = [&](Scheme scheme) {
    if (multiplies_in(device, scheme)) return scheme;
    const Scheme form = weight_only_form(scheme, device).value_or(scheme);
    if (form == scheme) {
      const std::string asked = fmt::format("{} weights of {}", facts(scheme).name, model.served_name());
      check_multiplies_in("device", scheme, device, asked);
    }
    if (form == Scheme::int4_wo) model.int4_bytes = facts(scheme).weight_bytes;  // with the scales of the checkpoint
    if (std::find(changed.begin(), changed.end(), scheme) == changed.end()) changed.push_back(scheme);
    return form;
  };
  const Scheme linear = fitted(model.scheme);
  if (model.attention_scheme) model.attention_scheme = fitted(*model.attention_scheme);
  model.expert_scheme = model.has_experts() ? fitted(model.expert_scheme) : linear;
  model.scheme = linear;
  for (const Scheme scheme : changed) {
    model.notes.push_back(fmt::format(
        "{} does not multiply in {}: engines keep the {} weights and multiply in bf16 there (weight-only kernels)",
        device.name, dtype_name(facts(scheme).math), facts(scheme).name));
  }
  return model;
}

}  // namespace foretoken
