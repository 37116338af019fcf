// What the sources of the attention kernels fix: tile sizes, whether query heads of a group share a tile, whether a
// long context is split over processors, and how many kernels one call launches.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <span>
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

// Query rows that a block works on together and keys of one step of its walk, for heads of up to `widest` values.
struct AttentionTile {
  int64_t widest = 0;
  int rows = 64, keys = 64;
};
inline constexpr int64_t any_width = std::numeric_limits<int64_t>::max();

// run_mha_fwd_splitkv_dispatch of FlashAttention 2: what a paged cache always takes.
inline constexpr AttentionTile flash_2_paged_tiles[] = {{64, 64, 256}, {128, 64, 128}, {any_width, 64, 64}};
inline constexpr AttentionTile flash_2_tiles[] = {{any_width, 128, 64}};
// tile_size_fwd_sm90 of FlashAttention 3: causal, and pages too small for the bulk copy engine.
inline constexpr AttentionTile flash_3_tiles[] = {
    {64, 192, 128}, {128, 128, 128}, {192, 128, 96}, {any_width, 128, 80}};
inline constexpr AttentionTile flash_3_fp8_tiles[] = {{64, 192, 160}, {192, 128, 160}, {any_width, 128, 128}};
// Tables of TensorRT-LLM's generated context kernels (mStepQ, mStepKv): two tiles of 128 rows take turns in a block,
// but of wide heads one alone.
inline constexpr AttentionTile generated_tiles[] = {{128, 256, 128}, {any_width, 128, 128}};
inline constexpr AttentionTile small_tiles[] = {{any_width, 64, 64}};
inline constexpr AttentionTile large_tiles[] = {{128, 128, 128}, {any_width, 128, 64}};
inline constexpr AttentionTile triton_tiles[] = {{any_width, 16, 64}};

// Rows that a tile of a decode kernel multiplies, whether queries fill them or not.
enum class DecodeTiles {
  fitted,     // not known: a constant of the form
  flash_2,    // 64 (run_mha_fwd_splitkv_dispatch)
  flash_4,    // 64, as its prompts of wide heads
  flash_3,    // 64 of one group of warps, else 128, and 192 of narrow heads (tile_size_fwd_sm90, use_one_mma_wg)
  planned,    // planned_tile_rows
  generated,  // 8 or 16, where a group has more 64 or 128 (mTileSizeQ in TensorRT-LLM's tables)
};

// vLLM captures decodes of up to 512 tokens into CUDA graphs, with room for 32 parts of each context
// (max_cudagraph_capture_size, flash_attn_max_num_splits_for_cuda_graph).
inline constexpr int64_t graph_tokens = 512;
inline constexpr double graph_parts = 32;

// Into how many parts a decode kernel splits a context inside such a graph.
enum class GraphParts {
  any,     // as if there was no graph
  most,    // no more than there is room for: a kernel before it plans the parts
  always,  // all that there is room for, most of them empty where the context is short
};

struct AttentionVariant {
  std::string_view name;    // what measurements and engines call it
  std::string_view kernel;  // variants with the same one share constants
  Overlap overlap = Overlap::synchronous;
  bool multiplies_fp8 = false;     // with an fp8 cache; else it widens to 16 bits first
  bool transposes_values = false;  // fp8: V is transposed inside the kernel; measured on Hopper, no faster than bf16
  bool packs_heads = false;        // prefill: the query heads of a kv head share tiles
  std::span<const AttentionTile> tiles = small_tiles;  // of prefill, the narrowest first
  std::span<const AttentionTile> fp8_tiles;            // the same where multiplies run in fp8; empty = no others
  bool plans_tiles = false;  // planned_tile_rows instead, and prefill splits keys where tiles are few
  int encoder_rows = 128, encoder_keys = 64;
  int encoder_padding = 32;        // encoder: head_dim is padded to a multiple of this
  int extra_launches = 0;          // kernels beside the cache write and the attention itself
  bool reduces_in_kernel = false;  // decode: partial results are joined without another launch
  GraphParts graph_parts = GraphParts::any;
  bool splits_any = false;  // decode: a long context is split also where no query heads are packed
  // decode: more query heads to a kv head than this go one by one through the vector units; 0 = no such limit
  int widest_group = 0;
  DecodeTiles decode_tiles = DecodeTiles::fitted;
  bool decodes_apart = false;    // prompts and decodes of a batch are two launches
  bool fills_processor = false;  // one block takes a processor's shared memory: no other hides its start and end
};

// FlashAttention 2 (paged), 3 and 4; FlashInfer; TensorRT-LLM's generated kernels; vLLM's Triton backend; PyTorch's
// scaled_dot_product_attention with its FlashAttention 2 (not paged: larger tiles) and with cuDNN's kernel (not open:
// its tiles are a guess). Other tile facts come from the kernels' sources, decodes_apart from vLLM's backends
// (FlashInfer's splits the batch); transposes_values is a finding from measurements, not a fact that a new kernel comes
// with.
inline constexpr AttentionVariant attention_variants[] = {
    {.name = "fa2", .kernel = "fa2", .tiles = flash_2_paged_tiles, .decode_tiles = DecodeTiles::flash_2},
    {.name = "fa2_v014", .kernel = "fa2", .tiles = flash_2_paged_tiles, .decode_tiles = DecodeTiles::flash_2},
    {.name = "fa2_v019", .kernel = "fa2", .tiles = flash_2_paged_tiles, .decode_tiles = DecodeTiles::flash_2},
    {.name = "fa3",
     .kernel = "fa3",
     .overlap = Overlap::asynchronous,
     .multiplies_fp8 = true,
     .transposes_values = true,
     .packs_heads = true,
     .tiles = flash_3_tiles,
     .fp8_tiles = flash_3_fp8_tiles,
     .encoder_rows = 192,
     .encoder_keys = 128,
     .extra_launches = 1,
     .graph_parts = GraphParts::most,
     .decode_tiles = DecodeTiles::flash_3,
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
     .graph_parts = GraphParts::always,
     .decode_tiles = DecodeTiles::flash_4,
     .fills_processor = true},
    {.name = "fi_fiprefill",
     .kernel = "flashinfer",
     .packs_heads = true,
     .plans_tiles = true,
     .decode_tiles = DecodeTiles::planned,
     .decodes_apart = true},
    {.name = "fi_fidecode",
     .kernel = "flashinfer",
     .packs_heads = true,
     .plans_tiles = true,
     .decode_tiles = DecodeTiles::planned,
     .decodes_apart = true},
    {.name = "fi_trtllmprefill",
     .kernel = "trtllm_gen",
     .overlap = Overlap::asynchronous,
     .multiplies_fp8 = true,
     .tiles = generated_tiles,
     .encoder_keys = 128,
     .reduces_in_kernel = true,
     .decode_tiles = DecodeTiles::generated,
     .decodes_apart = true},
    {.name = "fi_trtllmdecode",
     .kernel = "trtllm_gen",
     .overlap = Overlap::asynchronous,
     .multiplies_fp8 = true,
     .tiles = generated_tiles,
     .encoder_keys = 128,
     .reduces_in_kernel = true,
     .decode_tiles = DecodeTiles::generated,
     .decodes_apart = true},
    // TensorRT-LLM's own: on Hopper with warps of their own for copies (decode: only with an fp8 cache), elsewhere in
    // the manner of Ampere. Its decode kernels (XQA) join partial results themselves; wide groups take the older masked
    // kernel, one query head after the other. On data-centre Blackwell it runs the generated kernels above; with
    // their tiles instead of these its withheld errors were larger (prompts 20.0% instead of 18.0).
    {.name = "trtllm_sm100",
     .kernel = "trtllm_gen",
     .overlap = Overlap::asynchronous,
     .multiplies_fp8 = true,
     .tiles = flash_2_tiles,
     .encoder_keys = 128,
     .reduces_in_kernel = true,
     .decodes_apart = true},
    {.name = "trtllm_sm80",
     .kernel = "trtllm_sm80",
     .multiplies_fp8 = true,
     .reduces_in_kernel = true,
     .widest_group = 32},
    {.name = "trtllm_sm90",
     .kernel = "trtllm_sm90",
     .overlap = Overlap::asynchronous,
     .multiplies_fp8 = true,
     .tiles = large_tiles,
     .reduces_in_kernel = true,
     .widest_group = 32},
    {.name = "triton_attn",
     .kernel = "triton",
     .overlap = Overlap::generic,
     .tiles = triton_tiles,
     .encoder_rows = 64,
     .encoder_padding = 16},
    {.name = "sdpa_flash",
     .kernel = "fa2",
     .tiles = flash_2_tiles,
     .splits_any = true,
     .decode_tiles = DecodeTiles::flash_2},
    {.name = "sdpa_cudnn",
     .kernel = "cudnn",
     .overlap = Overlap::asynchronous,
     .tiles = large_tiles,
     .encoder_keys = 128},
};

// FA2DetermineCtaTileQ of FlashInfer, by the rows of one sequence.
inline int64_t planned_tile_rows(int64_t rows, int64_t head_dim) {
  if (rows > 64 && head_dim < 256) return 128;
  return rows > 16 ? 64 : 16;
}

// Keys of a step of such a tile: what half of the shared memory of a processor (100 KiB) leaves beside the queries for
// an fp8 cache, and what the registers hold.
inline int64_t planned_tile_keys(int64_t tile_rows, int64_t head_dim) {
  if (tile_rows == 128) return 64;
  if (head_dim >= 256) return tile_rows == 64 ? 32 : 64;
  return tile_rows == 16 && head_dim <= 64 ? 256 : 128;
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

// Keys that some query of a call sees.
inline int64_t seen_keys(const AttentionShape& shape) {
  return shape.window > 0 ? std::min(shape.kv_len, shape.q_len + shape.window - 1) : shape.kv_len;
}

// The tile of a prompt.
AttentionTile prefill_tile(const AttentionShape& shape, const AttentionVariant& variant, int64_t heads_per_tile);

// Whether the multiplies of a call run in fp8: the cache and the kernel allow it, and the shape does not say otherwise.
inline bool multiplies_in_fp8(const AttentionShape& shape, const AttentionVariant& variant) {
  return is_fp8(shape.kv_dtype) && variant.multiplies_fp8 && is_fp8(shape.math.value_or(DType::fp8));
}

}  // namespace foretoken
