// softmax(Q K^T) V: prefill, decode, and the bidirectional kind of encoders.
#include <algorithm>

#include "base/text.h"
#include "kernel/families/list.h"
#include "kernel/families/parameters.h"

namespace foretoken {
namespace attention {
namespace {

// What a kernel multiplies in when the cache is fp8: FlashAttention-3/4 and the TRT-LLM kernels in fp8;
// FlashAttention-2, FlashInfer's own and Triton kernels convert to bf16 first. Unknown kernels are taken at the faster.
enum KernelKind { unknown_kernel = 0, converts_to_bf16 = 1, multiplies_fp8 = 2 };

KernelParameter attention_kernel() {
  KernelParameter parameter =
      choice_parameter("kernel", "the implementation: decides what an fp8 cache is multiplied in",
                       {"any", "fa2", "fa3", "fa4", "fi_fiprefill", "fi_fidecode", "fi_trtllmprefill",
                        "fi_trtllmdecode", "triton_attn", "trtllm", "flashinfer", "sdpa_flash", "sdpa_cudnn"},
                       "any");
  parameter.parse = [](std::string_view text) -> std::optional<double> {
    if (text.starts_with("fa2")) return 1;     // fa2_v014
    if (text.starts_with("triton")) return 8;  // by vLLM version
    return 0;
  };
  return parameter;
}

KernelKind kernel_kind(double choice) {
  constexpr KernelKind kinds[] = {unknown_kernel,   converts_to_bf16, multiplies_fp8,   multiplies_fp8,
                                  converts_to_bf16, converts_to_bf16, multiplies_fp8,   multiplies_fp8,
                                  converts_to_bf16, multiplies_fp8,   converts_to_bf16, converts_to_bf16,
                                  converts_to_bf16};
  return kinds[static_cast<size_t>(choice)];
}

constexpr double automatic = -1;

KernelParameter multiply_parameter() {
  KernelParameter parameter =
      dtype_parameter("attn_dtype", "what the multiplies use; auto: as the kernel does", DType::bf16);
  parameter.fallback = parameter.example = "auto";
  parameter.parse = [](std::string_view text) -> std::optional<double> {
    if (text == "auto") return automatic;
    const std::optional<DType> type = dtype_from_name(text);
    return type ? std::optional(static_cast<double>(*type)) : std::nullopt;
  };
  return parameter;
}

// What the multiplies use where that is known.
std::optional<DType> multiplied_in(double attn_dtype, double kernel, DType kv_dtype) {
  if (attn_dtype != automatic) return dtype(attn_dtype);
  if (kv_dtype == DType::fp8 && kernel_kind(kernel) == converts_to_bf16) return DType::bf16;
  return std::nullopt;
}

// In the order of both cached families.
enum CachedParameter {
  kernel,
  attn_dtype,
  kv_dtype,
  batch,
  heads,
  kv_heads,
  head_dim,
  value_dim,
  q_len,
  kv_len,
  window,
  writes_kv
};

KernelShape cached_shape(KernelValues v, AttentionPhase phase) {
  AttentionShape shape{.phase = phase,
                       .batch = count(v[batch]),
                       .heads = count(v[heads]),
                       .kv_heads = count(v[kv_heads]),
                       .head_dim = count(v[head_dim]),
                       .value_dim = count(v[value_dim]),
                       .q_len = count(v[q_len]),
                       .kv_len = count(v[kv_len]),
                       .window = count(v[window]),
                       .kv_dtype = dtype(v[kv_dtype]),
                       .writes_kv = yes(v[writes_kv])};
  shape.math = multiplied_in(v[attn_dtype], v[kernel], shape.kv_dtype);
  return shape;
}

std::optional<Misfit> cached_misfit(KernelValues v) {
  if (count(v[heads]) % count(v[kv_heads]) != 0) return Misfit{kv_heads, "a divisor of heads"};
  if (v[kv_len] < v[q_len]) return Misfit{kv_len, "at least q_len: the new tokens are among the keys"};
  return std::nullopt;
}

std::vector<KernelParameter> cached_parameters(bool decode) {
  return {attention_kernel(),
          multiply_parameter(),
          dtype_parameter("kv_dtype", "how the cache is stored", DType::bf16),
          size_parameter("batch", "sequences", "8"),
          size_parameter("heads", "query heads", "32"),
          size_parameter("kv_heads", "key and value heads", "8"),
          size_parameter_or("head_dim", "size of a head", "128"),
          size_parameter_or("value_dim", "size of a value head; 0 = head_dim", "0", 0),
          decode ? size_parameter_or("q_len", "new tokens of each sequence", "1")
                 : size_parameter("q_len", "new tokens of each sequence", "2048"),
          size_parameter("kv_len", "keys of each sequence, the new tokens among them", decode ? "4096" : "2048"),
          size_parameter_or("window", "keys a query may look back on, itself included; 0 = all", "0", 0),
          yes_no_parameter("writes_kv", "the new K and V are written to the cache in the same call", true)};
}

// In the order of mixed_parameters().
namespace mixed {
enum Parameter {
  kernel,
  attn_dtype,
  kv_dtype,
  heads,
  kv_heads,
  head_dim,
  value_dim,
  prompts,
  q_len,
  kv_len,
  decodes,
  decode_kv_len,
  decode_kv_max,
  window,
  writes_kv
};
}  // namespace mixed

std::vector<KernelParameter> mixed_parameters() {
  return {attention_kernel(),
          multiply_parameter(),
          dtype_parameter("kv_dtype", "how the cache is stored", DType::bf16),
          size_parameter("heads", "query heads", "32"),
          size_parameter("kv_heads", "key and value heads", "8"),
          size_parameter_or("head_dim", "size of a head", "128"),
          size_parameter_or("value_dim", "size of a value head; 0 = head_dim", "0", 0),
          size_parameter_or("prompts", "prompt chunks", "1", 0),
          size_parameter("q_len", "new tokens of each chunk", "512"),
          size_parameter("kv_len", "keys of each chunk, its new tokens among them", "2048"),
          size_parameter("decodes", "sequences with one new token", "32", 0),
          size_parameter("decode_kv_len", "mean keys of a decode, the new token among them", "1024"),
          size_parameter_or("decode_kv_max", "keys of the longest decode; 0 = all have the mean", "0", 0),
          size_parameter_or("window", "keys a query may look back on, itself included; 0 = all", "0", 0),
          yes_no_parameter("writes_kv", "the new K and V are written to the cache in the same call", true)};
}

KernelShape mixed_shape(KernelValues v) {
  MixedAttentionShape shape{.heads = count(v[mixed::heads]),
                            .kv_heads = count(v[mixed::kv_heads]),
                            .head_dim = count(v[mixed::head_dim]),
                            .value_dim = count(v[mixed::value_dim]),
                            .window = count(v[mixed::window]),
                            .kv_dtype = dtype(v[mixed::kv_dtype]),
                            .writes_kv = yes(v[mixed::writes_kv]),
                            .math = multiplied_in(v[mixed::attn_dtype], v[mixed::kernel], dtype(v[mixed::kv_dtype]))};
  shape.add_prompts(count(v[mixed::prompts]), count(v[mixed::q_len]), count(v[mixed::kv_len]));
  const auto within_window = [&](int64_t keys) { return shape.window > 0 ? std::min(keys, shape.window) : keys; };
  shape.add_decodes(count(v[mixed::decodes]), within_window(count(v[mixed::decode_kv_len])));
  if (shape.decodes > 0)
    shape.longest_decode = std::max(shape.longest_decode, within_window(count(v[mixed::decode_kv_max])));
  return shape;
}

std::optional<Misfit> mixed_misfit(KernelValues v) {
  if (count(v[mixed::heads]) % count(v[mixed::kv_heads]) != 0) return Misfit{mixed::kv_heads, "a divisor of heads"};
  if (v[mixed::kv_len] < v[mixed::q_len])
    return Misfit{mixed::kv_len, "at least q_len: the new tokens are among the keys"};
  if (v[mixed::prompts] + v[mixed::decodes] < 1) return Misfit{mixed::decodes, "at least one prompt or decode"};
  if (v[mixed::decode_kv_max] > 0 && v[mixed::decode_kv_max] < v[mixed::decode_kv_len])
    return Misfit{mixed::decode_kv_max, "at least the mean, decode_kv_len"};
  if (v[mixed::decode_kv_max] > v[mixed::decode_kv_len] * v[mixed::decodes])
    return Misfit{mixed::decode_kv_max, "no more keys than all decodes have together"};
  return std::nullopt;
}

}  // namespace
}  // namespace attention

KernelFamily attention_prefill_family() {
  return {.name = "attention_prefill",
          .summary = "causal attention of prompts, cache write included",
          .parameters = attention::cached_parameters(false),
          .shape = [](KernelValues v) { return attention::cached_shape(v, AttentionPhase::prefill); },
          .misfit = attention::cached_misfit};
}

KernelFamily attention_decode_family() {
  return {.name = "attention_decode",
          .summary = "attention of one new token per sequence over its cache, cache write included",
          .parameters = attention::cached_parameters(true),
          .shape = [](KernelValues v) { return attention::cached_shape(v, AttentionPhase::decode); },
          .misfit = attention::cached_misfit};
}

KernelFamily attention_mixed_family() {
  return {
      .name = "attention_mixed",
      .summary = "one launch over prompt chunks and decodes, or over decodes of unequal length, cache write included",
      .parameters = attention::mixed_parameters(),
      .shape = attention::mixed_shape,
      .misfit = attention::mixed_misfit};
}

KernelFamily attention_backward_family() {
  return {.name = "attention_backward",
          .summary = "gradients of queries, keys and values of causal attention",
          .parameters = attention::cached_parameters(false),
          .shape = [](KernelValues v) -> KernelShape {
            auto shape = std::get<AttentionShape>(attention::cached_shape(v, AttentionPhase::prefill));
            shape.writes_kv = false;  // there is no cache to write
            shape.pass = Pass::backward;
            return shape;
          },
          .misfit = attention::cached_misfit};
}

KernelFamily attention_encoder_family() {
  return {.name = "attention_encoder",
          .summary = "bidirectional attention (ViT, BERT), no cache",
          .parameters = {variant_parameter(),
                         dtype_parameter("dtype", "of queries, keys, values and the multiplies", DType::bf16),
                         size_parameter("batch", "sequences", "8"), size_parameter("heads", "heads", "16"),
                         size_parameter_or("head_dim", "size of a head", "64"),
                         size_parameter("q_len", "tokens", "1024"), size_parameter("kv_len", "keys", "1024")},
          .shape = [](KernelValues v) -> KernelShape {
            return AttentionShape{.phase = AttentionPhase::encoder,
                                  .batch = count(v[2]),
                                  .heads = count(v[3]),
                                  .kv_heads = count(v[3]),
                                  .head_dim = count(v[4]),
                                  .q_len = count(v[5]),
                                  .kv_len = count(v[6]),
                                  .causal = false,
                                  .dtype = dtype(v[1]),
                                  .kv_dtype = dtype(v[1])};
          }};
}

}  // namespace foretoken
