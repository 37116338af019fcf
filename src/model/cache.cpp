// What one sequence keeps between steps: keys and values, latents, compressed keys, recurrent states.
#include <algorithm>
#include <cmath>
#include <optional>

#include "base/error.h"
#include "model/weights.h"

namespace foretoken {
namespace {

// Engines keep the indexer's keys in fp8 with an fp32 scale of every 128 values, whatever the rest of the cache is in
// (vLLM, deepseek_v2.py; SGLang, memory_pool.py).
double index_key_bytes(const std::optional<SparseIndexer>& indexer) {
  if (!indexer || indexer->reused) return 0;
  const auto head_dim = static_cast<double>(indexer->head_dim);
  return head_dim + 4 * std::ceil(head_dim / 128);
}

// Bytes that `context` tokens leave in the cache of one layer, whose values take `element` bytes each.
double cached_bytes(std::monostate, double, double) {
  return 0;
}

double cached_bytes(const Attention& attention, double context, double element) {
  if (!attention.causal || attention.reuses_kv) return 0;
  const int64_t value_dim = attention.value_dim > 0 ? attention.value_dim : attention.head_dim;
  const double values = static_cast<double>(attention.kv_heads) * static_cast<double>(attention.head_dim + value_dim);
  const double held = attention.window > 0 ? std::min(context, static_cast<double>(attention.window)) : context;
  return held * (values * element + index_key_bytes(attention.indexer));
}

// One latent and one rotary key for all heads (DeepSeek-V2, section 2.1), and the indexer's key. Kernels that read
// chosen keys keep the rotary part in 16 bits beside an fp8 latent, with an fp32 scale of every 128 values (vLLM's
// fp8_ds_mla, SGLang's memory_pool.py: 656 bytes for 512 and 64).
double cached_bytes(const LatentAttention& attention, double context, double element) {
  const auto latent = static_cast<double>(attention.latent_dim), rope = static_cast<double>(attention.rope_dim);
  const bool is_sparse_fp8 = attention.indexer && element == 1;
  const double entry = is_sparse_fp8 ? latent + 4 * std::ceil(latent / 128) + 2 * rope : (latent + rope) * element;
  return context * (entry + index_key_bytes(attention.indexer));
}

// Of one key, which is the value too. In fp8 the rotary part stays in 16 bits, with a one-byte scale of every 64 other
// values and one byte of padding (vLLM and SGLang: 584 bytes for 448 and 64).
double compressed_entry_bytes(const CompressedAttention& attention, double element) {
  const auto head_dim = static_cast<double>(attention.head_dim);
  if (element != 1) return head_dim * element;
  const double rope = std::min(static_cast<double>(attention.rope_dim), head_dim), others = head_dim - rope;
  return others + 2 * rope + std::ceil(others / 64) + 1;
}

// The window in full, then one entry per `ratio` tokens. In other formats than fp8 all is in one format, as in the
// figures that DeepSeek publishes of V4.
double cached_bytes(const CompressedAttention& attention, double context, double element) {
  const double entry = compressed_entry_bytes(attention, element);
  const double recent = std::min(context, static_cast<double>(attention.window)) * entry;
  if (attention.ratio == 0) return recent;
  double index = 0;
  if (attention.indexer) {
    index =
        element == 1 ? index_key_bytes(attention.indexer) : static_cast<double>(attention.indexer->head_dim) * element;
  }
  return recent + context / static_cast<double>(attention.ratio) * (entry + index);
}

double cached_bytes(const GatedDelta&, double, double) {
  return 0;
}
double cached_bytes(const Lightning&, double, double) {
  return 0;
}
double cached_bytes(const Mamba2&, double, double) {
  return 0;
}
double cached_bytes(const ShortConvolution&, double, double) {
  return 0;
}

// Bytes of fixed-size state. Recurrent states are kept in fp32 (as vLLM does for these families), the last
// inputs of short convolutions in the model's dtype.
constexpr double state_element = 4;

double state_of(std::monostate, double) {
  return 0;
}
double state_of(const Attention&, double) {
  return 0;
}
double state_of(const LatentAttention&, double) {
  return 0;
}

// Tokens not yet pooled: their keys and gates, in fp32.
double state_of(const CompressedAttention& attention, double) {
  if (attention.ratio == 0) return 0;
  const auto overlap = static_cast<double>(compressor_overlap(attention.ratio));
  const double rows = overlap * static_cast<double>(attention.ratio);
  double width = 2 * overlap * static_cast<double>(attention.head_dim);
  if (attention.indexer) width += 2 * overlap * static_cast<double>(attention.indexer->head_dim);
  return rows * width * state_element;
}

double state_of(const GatedDelta& delta, double dtype_bytes) {
  const auto key_width = static_cast<double>(delta.key_heads * delta.key_dim);
  const auto value_width = static_cast<double>(delta.value_heads * delta.value_dim);
  const double convolution = (2 * key_width + value_width) * static_cast<double>(delta.conv_kernel - 1);
  return value_width * static_cast<double>(delta.key_dim) * state_element + convolution * dtype_bytes;
}

double state_of(const Lightning& lightning, double) {
  const auto head_dim = static_cast<double>(lightning.head_dim);
  return static_cast<double>(lightning.heads) * head_dim * head_dim * state_element;
}

double state_of(const Mamba2& mamba, double dtype_bytes) {
  const auto inner = static_cast<double>(mamba.heads * mamba.head_dim);
  const double conv_width = inner + 2 * static_cast<double>(mamba.groups * mamba.state);
  return inner * static_cast<double>(mamba.state) * state_element +
         conv_width * static_cast<double>(mamba.conv_kernel - 1) * dtype_bytes;
}

double state_of(const ShortConvolution& convolution, double dtype_bytes) {
  return static_cast<double>(convolution.width) * static_cast<double>(convolution.kernel - 1) * dtype_bytes;
}

// Bytes per token by how long they are kept: as long as the token is inside a window, or to the end.
struct BytesByReach {
  double in_window = 0, to_the_end = 0;
  int64_t window = 0;
};

template <class Mixer>
BytesByReach bytes_by_reach(const Mixer& mixer, double element) {
  return {.to_the_end = cached_bytes(mixer, 1, element)};
}
BytesByReach bytes_by_reach(const Attention& attention, double element) {
  const double bytes = cached_bytes(attention, 1, element);
  if (attention.window > 0) return {.in_window = bytes, .window = attention.window};
  return {.to_the_end = bytes};
}
BytesByReach bytes_by_reach(const CompressedAttention& attention, double element) {
  const double recent = compressed_entry_bytes(attention, element);
  return {.in_window = recent,
          .to_the_end = cached_bytes(attention, 1, element) - (attention.window > 0 ? recent : 0),
          .window = attention.window};
}

double cached_bytes_of_model(const Model& model, double context, DType kv_dtype) {
  const double element = bytes_per_element(kv_dtype);
  double bytes = 0;
  for (const Layer& layer : model.layers) {
    bytes += std::visit([&](const auto& mixer) { return cached_bytes(mixer, context, element); }, layer.mixer);
  }
  return bytes;
}

}  // namespace

Bytes kv_bytes_per_token(const Model& model, DType kv_dtype) {
  return Bytes(cached_bytes_of_model(model, 1, kv_dtype));
}

Bytes cache_bytes(const Model& model, int64_t context, DType kv_dtype) {
  ensure(context >= 0, "a context has at least no tokens");
  return Bytes(cached_bytes_of_model(model, static_cast<double>(context), kv_dtype)) + state_bytes(model);
}

std::vector<CachePart> layer_cache(const Model& model, const Layer& layer, DType kv_dtype) {
  const double element = bytes_per_element(kv_dtype);
  const BytesByReach bytes = std::visit([&](const auto& mixer) { return bytes_by_reach(mixer, element); }, layer.mixer);
  const double state =
      std::visit([&](const auto& mixer) { return state_of(mixer, bytes_per_element(model.dtype)); }, layer.mixer);
  std::vector<CachePart> parts;
  if (bytes.to_the_end > 0) parts.push_back({.per_token = Bytes(bytes.to_the_end)});
  if (bytes.window > 0) parts.push_back({.per_token = Bytes(bytes.in_window), .window = bytes.window});
  if (state > 0) parts.push_back({.state = Bytes(state)});
  return parts;
}

Bytes cross_cache_bytes(const Model& model, int64_t tokens, DType kv_dtype) {
  double values = 0;
  for (const Layer& layer : model.layers) {
    if (!layer.cross_attention) continue;
    const Attention& attention = *layer.cross_attention;
    const int64_t value_dim = attention.value_dim > 0 ? attention.value_dim : attention.head_dim;
    values += static_cast<double>(attention.kv_heads) * static_cast<double>(attention.head_dim + value_dim);
  }
  return Bytes(values * static_cast<double>(tokens) * bytes_per_element(kv_dtype));
}

Bytes state_bytes(const Model& model) {
  double bytes = 0;
  for (const Layer& layer : model.layers) {
    bytes +=
        std::visit([&](const auto& mixer) { return state_of(mixer, bytes_per_element(model.dtype)); }, layer.mixer);
  }
  return Bytes(bytes);
}

}  // namespace foretoken
