// What the sources of the attention kernels fix: tile sizes, whether query heads of a group share a tile, whether a
// long context is split over processors, and how many kernels one call launches.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <vector>

#include "kernel/forms/form.h"

namespace foretoken {

// How a kernel hides the soft-max behind the matrix multiplies.
enum class Overlap {
  synchronous,   // one group of warps does both in turn (as on Ampere)
  asynchronous,  // warp-specialised: copies, multiplies and soft-max run beside each other
  generic,       // compiled from a tile language without hardware-specific pipelining: the same rate on every GPU
};

struct AttentionVariant {
  std::string_view name;    // what measurements and engines call it
  std::string_view kernel;  // variants with the same one share constants
  Overlap overlap = Overlap::synchronous;
  bool multiplies_fp8 = false;      // with an fp8 cache; else it widens to 16 bits first
  bool transposes_values = false;   // fp8: V is transposed inside the kernel; measured on Hopper, no faster than bf16
  bool packs_heads = false;         // prefill: the query heads of a kv head share tiles
  int rows = 64, rows_narrow = 64;  // prefill tile; the second for head_dim <= 64
  bool plans_tiles = false;         // planned_tile_rows instead, and prefill splits keys where tiles are few
  int keys = 64, keys_wide = 64;    // prefill key block; the second for head_dim > 128
  int encoder_rows = 128, encoder_keys = 64;
  int encoder_padding = 32;        // encoder: head_dim is padded to a multiple of this
  int extra_launches = 0;          // kernels beside the cache write and the attention itself
  bool reduces_in_kernel = false;  // decode: partial results are joined without another launch
  bool splits_any = false;         // decode: a long context is split also where no query heads are packed
  // decode: more query heads to a kv head than this go one by one through the vector units; 0 = no such limit
  int widest_group = 0;
  bool decodes_apart = false;    // prompts and decodes of a batch are two launches
  bool fills_processor = false;  // one block takes a processor's shared memory: no other hides its start and end
};

// FlashAttention 2 (paged), 3 and 4; FlashInfer; TensorRT-LLM's generated kernels; vLLM's Triton backend; PyTorch's
// scaled_dot_product_attention with its FlashAttention 2 (not paged: larger tiles) and with cuDNN's kernel (not open:
// its tiles are a guess). Other tile facts come from the kernels' sources, decodes_apart from vLLM's backends
// (FlashInfer's splits the batch); transposes_values is a finding from measurements, not a fact that a new kernel comes
// with.
inline constexpr AttentionVariant attention_variants[] = {
    {.name = "fa2", .kernel = "fa2"},
    {.name = "fa2_v014", .kernel = "fa2"},
    {.name = "fa2_v019", .kernel = "fa2"},
    {.name = "fa3",
     .kernel = "fa3",
     .overlap = Overlap::asynchronous,
     .multiplies_fp8 = true,
     .transposes_values = true,
     .packs_heads = true,
     .rows = 128,
     .rows_narrow = 128,
     .keys = 128,
     .encoder_rows = 192,
     .encoder_keys = 128,
     .extra_launches = 1,
     .fills_processor = true},
    {.name = "fa4",
     .kernel = "fa4",
     .overlap = Overlap::asynchronous,
     .multiplies_fp8 = true,
     .transposes_values = true,
     .packs_heads = true,
     .encoder_keys = 128,
     .encoder_padding = 16,
     .extra_launches = 1,
     .fills_processor = true},
    {.name = "fi_fiprefill", .kernel = "flashinfer", .packs_heads = true, .plans_tiles = true, .decodes_apart = true},
    {.name = "fi_fidecode", .kernel = "flashinfer", .packs_heads = true, .plans_tiles = true, .decodes_apart = true},
    {.name = "fi_trtllmprefill",
     .kernel = "trtllm_gen",
     .overlap = Overlap::asynchronous,
     .multiplies_fp8 = true,
     .rows = 128,
     .rows_narrow = 128,
     .encoder_keys = 128,
     .reduces_in_kernel = true,
     .decodes_apart = true},
    {.name = "fi_trtllmdecode",
     .kernel = "trtllm_gen",
     .overlap = Overlap::asynchronous,
     .multiplies_fp8 = true,
     .rows = 128,
     .rows_narrow = 128,
     .encoder_keys = 128,
     .reduces_in_kernel = true,
     .decodes_apart = true},
    // TensorRT-LLM's own: on Hopper with warps of their own for copies (decode: only with an fp8 cache), elsewhere in
    // the manner of Ampere. Its decode kernels (XQA) join partial results themselves; wide groups take the older masked
    // kernel, one query head after the other. On data-centre Blackwell it runs the generated kernels above.
    {.name = "trtllm_sm80",
     .kernel = "trtllm_sm80",
     .multiplies_fp8 = true,
     .reduces_in_kernel = true,
     .widest_group = 32},
    {.name = "trtllm_sm90",
     .kernel = "trtllm_sm90",
     .overlap = Overlap::asynchronous,
     .multiplies_fp8 = true,
     .rows = 128,
     .rows_narrow = 128,
     .keys = 128,
     .reduces_in_kernel = true,
     .widest_group = 32},
    {.name = "triton_attn",
     .kernel = "triton",
     .overlap = Overlap::generic,
     .rows = 16,
     .rows_narrow = 16,
     .encoder_rows = 64,
     .encoder_padding = 16},
    {.name = "sdpa_flash", .kernel = "fa2", .rows = 128, .rows_narrow = 128, .splits_any = true},
    {.name = "sdpa_cudnn",
     .kernel = "cudnn",
     .overlap = Overlap::asynchronous,
     .rows = 128,
     .rows_narrow = 128,
     .keys = 128,
     .encoder_keys = 128},
};

// FA2DetermineCtaTileQ of FlashInfer, by the rows of one sequence.
inline int64_t planned_tile_rows(int64_t rows, int64_t head_dim) {
  if (rows > 64 && head_dim < 256) return 128;
  return rows > 16 ? 64 : 16;
}

// Everything but the kernel's name that the variant and the group of a call depend on (Form::kind_key).
inline uint64_t attention_kind_key(const AttentionShape& shape) {
  const uint64_t math = shape.math ? 1 + static_cast<uint64_t>(*shape.math) : 0;
  const auto group = static_cast<uint64_t>(shape.heads / std::max<int64_t>(1, shape.kv_heads));
  return static_cast<uint64_t>(shape.head_dim) << 40U | group << 24U | math << 16U |
         static_cast<uint64_t>(shape.phase) << 8U | static_cast<uint64_t>(shape.kv_dtype);
}

// The variant of that name; "trtllm" is the stack's kernel for the device, "flashinfer" what it takes where it has
// none. An unknown or empty name gives what vLLM 0.24 would run.
const AttentionVariant& attention_variant(std::string_view name, const AttentionShape& shape,
                                          const DeviceTraits& device);

std::vector<std::string_view> attention_variant_names();

inline bool is_fp8(DType type) {
  return type == DType::fp8;
}

// Whether the multiplies of a call run in fp8: the cache and the kernel allow it, and the shape does not say otherwise.
inline bool multiplies_in_fp8(const AttentionShape& shape, const AttentionVariant& variant) {
  return is_fp8(shape.kv_dtype) && variant.multiplies_fp8 && is_fp8(shape.math.value_or(DType::fp8));
}

}  // namespace foretoken
