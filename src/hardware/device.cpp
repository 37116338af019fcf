#include "hardware/device.h"

#include <span>

namespace foretoken {
namespace {

// What to try in turn for a type, itself first.
std::span<const DType> compute_types(DType type) {
  using enum DType;
  static constexpr DType for_fp4[] = {fp4, fp8, bf16, fp16, fp32};
  static constexpr DType for_int4[] = {int4, int8, bf16, fp16, fp32};
  static constexpr DType for_fp16[] = {fp16, bf16, fp32};
  static constexpr DType for_tf32[] = {tf32, fp32};
  static constexpr DType for_fp64[] = {fp64};
  switch (type) {
    case fp64:
      return for_fp64;
    case tf32:
      return for_tf32;
    case fp32:
      return std::span(for_tf32).subspan(1);
    case fp16:
      return for_fp16;
    case bf16:
      return std::span(for_fp4).subspan(2);
    case fp8:
      return std::span(for_fp4).subspan(1);
    case fp4:
      return for_fp4;
    case int8:
      return std::span(for_int4).subspan(1);
    case int4:
      return for_int4;
  }
  return {};
}

}  // namespace

std::string_view device_kind_name(DeviceKind kind) {
  return device_kind_names[static_cast<size_t>(kind)];
}

std::string_view memory_type_name(MemoryType type) {
  return memory_type_names[static_cast<size_t>(type)];
}

bool is_stacked(MemoryType type) {
  return type <= MemoryType::hbm4;
}

bool Device::multiplies_integers_only() const {
  using enum DType;
  for (const DType type : {fp64, fp32, tf32, bf16, fp16, fp8, fp4}) {
    if (dense_peak[static_cast<size_t>(type)]) return false;
  }
  return dense_peak[static_cast<size_t>(int8)] || dense_peak[static_cast<size_t>(int4)];
}

std::optional<DType> Device::type_or_fallback(DType type) const {
  for (const DType candidate : compute_types(type)) {
    if (dense_peak[static_cast<size_t>(candidate)]) return candidate;
  }
  const bool in_passes = kind == DeviceKind::tpu && (type == DType::fp32 || type == DType::tf32);
  if (in_passes && dense_peak[static_cast<size_t>(DType::bf16)]) return DType::bf16;
  if (type == DType::fp64) return std::nullopt;
  for (const DType candidate : {DType::int8, DType::int4}) {
    if (multiplies_integers_only() && dense_peak[static_cast<size_t>(candidate)]) return candidate;
  }
  return std::nullopt;
}

std::optional<FlopsPerSecond> Device::peak_or_fallback(DType type) const {
  const std::optional<DType> used = type_or_fallback(type);
  if (!used) return std::nullopt;
  constexpr double bf16_passes_of_fp32 = 6;
  const bool in_passes = *used == DType::bf16 && (type == DType::fp32 || type == DType::tf32);
  return dense_peak[static_cast<size_t>(*used)]->value / (in_passes ? bf16_passes_of_fp32 : 1);
}

}  // namespace foretoken
