#include "kernel/forms/attention_variants.h"

namespace foretoken {
namespace {

std::string_view dispatched(const AttentionShape& shape, const DeviceTraits& device) {
  const bool datacentre_blackwell = device.architecture == 100 || device.architecture == 103;
  if (shape.phase == AttentionPhase::encoder) {
    return datacentre_blackwell ? "fa4" : device.architecture == 90 ? "fa3" : "fa2";
  }
  const bool odd_width = shape.head_dim == 192;
  if (datacentre_blackwell) return odd_width ? "triton_attn" : "fi_trtllmprefill";
  if (device.architecture == 90) return shape.head_dim > 256 ? "fa4" : "fa3";
  if (is_fp8(shape.kv_dtype)) return odd_width ? "triton_attn" : "fi_fiprefill";
  return "fa2";
}

std::string_view trtllm_kernel(const AttentionShape& shape, const DeviceTraits& device) {
  if (device.architecture == 100 || device.architecture == 103) return "fi_trtllmprefill";
  const bool older = shape.phase == AttentionPhase::decode && !is_fp8(shape.kv_dtype);
  return device.architecture == 90 && !older ? "trtllm_sm90" : "trtllm_sm80";
}

const AttentionVariant* find(std::string_view name) {
  for (const AttentionVariant& variant : attention_variants) {
    if (variant.name == name) return &variant;
  }
  return nullptr;
}

}  // namespace

std::vector<std::string_view> attention_variant_names() {
  std::vector<std::string_view> names;
  for (const AttentionVariant& variant : attention_variants) names.push_back(variant.name);
  return names;
}

const AttentionVariant& attention_variant(std::string_view name, const AttentionShape& shape,
                                          const DeviceTraits& device) {
  if (name == "trtllm") return *find(trtllm_kernel(shape, device));
  if (name == "flashinfer") return *find("fi_fiprefill");
  if (const AttentionVariant* named = find(name)) return *named;
  return *find(dispatched(shape, device));
}

}  // namespace foretoken
