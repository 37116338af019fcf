#include "kernel/forms/attention_variants.h"

namespace foretoken {
namespace {

std::string_view dispatched(const AttentionShape& shape, const DeviceTraits& device) {
  const bool odd_width = shape.head_dim == 192;
  const bool encodes = shape.phase == AttentionPhase::encoder;
  switch (device.generation->attention) {
    case AttentionKernels::generated:
      if (encodes) return "fa4";
      return odd_width ? "triton_attn" : "fi_trtllmprefill";
    case AttentionKernels::flash_3:
      return !encodes && shape.head_dim > 256 ? "fa4" : "fa3";
    case AttentionKernels::flash_2:
      break;
  }
  if (!encodes && is_fp8(shape.kv_dtype)) return odd_width ? "triton_attn" : "fi_fiprefill";
  return "fa2";
}

std::string_view trtllm_kernel(const AttentionShape& shape, const DeviceTraits& device) {
  if (device.generation->attention == AttentionKernels::generated) return "trtllm_sm100";
  const bool older = shape.phase == AttentionPhase::decode && !is_fp8(shape.kv_dtype);
  return device.generation->attention == AttentionKernels::flash_3 && !older ? "trtllm_sm90" : "trtllm_sm80";
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

AttentionTile prefill_tile(const AttentionShape& shape, const AttentionVariant& variant, int64_t heads_per_tile) {
  if (variant.plans_tiles) {
    const int64_t rows = planned_tile_rows(shape.q_len * heads_per_tile, shape.head_dim);
    return {.widest = shape.head_dim,
            .rows = static_cast<int>(rows),
            .keys = static_cast<int>(planned_tile_keys(rows, shape.head_dim))};
  }
  const bool fp8 = !variant.fp8_tiles.empty() && multiplies_in_fp8(shape, variant);
  for (const AttentionTile& tile : fp8 ? variant.fp8_tiles : variant.tiles) {
    if (shape.head_dim <= tile.widest) return tile;
  }
  return {};
}

const AttentionVariant& attention_variant(std::string_view name, const AttentionShape& shape,
                                          const DeviceTraits& device) {
  if (name == "trtllm") return *find(trtllm_kernel(shape, device));
  if (name == "flashinfer") return *find("fi_fiprefill");
  if (const AttentionVariant* named = find(name)) return *named;
  return *find(dispatched(shape, device));
}

}  // namespace foretoken
