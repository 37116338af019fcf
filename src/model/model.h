// A neural network as numbers: what its config says, in one form for all families.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/number_format.h"

namespace foretoken {

// ---- token mixers -------------------------------------------------------------------------------------------------

// Picks the keys a sparse-attention query reads (DeepSeek-V3.2, MiniMax-M3).
struct SparseIndexer {
  int64_t heads = 0, head_dim = 0;
  int64_t top_k = 0;    // keys read per query
  int64_t block = 1;    // keys chosen together
  bool reused = false;  // the choice of an earlier layer: no indexer of its own (GLM-5.2)
  bool operator==(const SparseIndexer&) const = default;
};

struct Attention {
  int64_t heads = 1, kv_heads = 1, head_dim = 128;
  int64_t value_dim = 0;   // 0 = head_dim
  int64_t window = 0;      // sliding (or chunked) attention span in tokens; 0 = full
  int64_t rotary_dim = 0;  // 0 = no rotary embedding
  bool causal = true;
  bool qkv_bias = false, output_bias = false;
  bool qk_norm = false;          // a norm over each query and key head
  bool output_gate = false;      // q projection is twice as wide; the second half gates the output (Qwen3.5)
  bool head_gate = false;        // one gate for each head, a projection of hidden x heads (Laguna-XS.2, Step-3.5)
  bool keys_are_values = false;  // no V projection; the cache still holds K and V unless said otherwise (Gemma 4)
  bool sinks = false;            // one learned logit per head (gpt-oss)
  bool qk_norm_whole = false;    // with qk_norm: one norm over all heads together (MiniMax-M2, OLMo 2)
  bool reuses_kv = false;        // reads the cache of an earlier layer: no K/V projection, no cache (Gemma 4 small)
  int64_t relative_buckets = 0;  // learned relative-position biases held by this layer, per head (T5)
  std::optional<SparseIndexer> indexer;  // block-sparse (MiniMax-M3)
  bool operator==(const Attention&) const = default;
};

struct LatentAttention {
  int64_t heads = 1;
  int64_t query_rank = 0;  // 0 = direct projection
  int64_t latent_dim = 512, nope_dim = 128, rope_dim = 64, value_dim = 128;
  bool output_gate = false;  // hidden x (heads value_dim), gates the output (Kimi-K3)
  bool head_gate = false;    // hidden x heads, gates each head's output (Ling 3.0)
  std::optional<SparseIndexer> indexer;
  bool operator==(const LatentAttention&) const = default;
};

// DeepSeek-V4: one shared KV head, queries through a low rank, grouped low-rank output, keys compressed `ratio` to one.
struct CompressedAttention {
  int64_t heads = 1, head_dim = 512, rope_dim = 64;
  int64_t query_rank = 0, output_rank = 0, output_groups = 1;
  int64_t ratio = 0;  // 0 = sliding window only
  int64_t window = 0;
  std::optional<SparseIndexer> indexer;
  bool operator==(const CompressedAttention&) const = default;
};

struct GatedDelta {               // GDN (Qwen3.5) and KDA (Kimi Linear)
  bool per_channel_gate = false;  // KDA
  int64_t key_heads = 1, value_heads = 1, key_dim = 128, value_dim = 128, conv_kernel = 4;
  bool full_rank_gate = false;   // KDA output gate: hidden x width instead of two low-rank factors
  bool full_rank_decay = false;  // KDA decay: the same (Ling 3.0)
  bool operator==(const GatedDelta&) const = default;
};

struct Lightning {  // MiniMax-Text-01 linear attention
  int64_t heads = 1, head_dim = 128;
  bool operator==(const Lightning&) const = default;
};

struct Mamba2 {
  int64_t heads = 1, head_dim = 64, state = 128, groups = 8, conv_kernel = 4, chunk = 128;
  bool operator==(const Mamba2&) const = default;
};

// LFM2: three projections of the input; a depthwise convolution between two gates.
struct ShortConvolution {
  int64_t width = 1, kernel = 3;
  bool operator==(const ShortConvolution&) const = default;
};

using Mixer = std::variant<std::monostate, Attention, LatentAttention, CompressedAttention, GatedDelta, Lightning,
                           Mamba2, ShortConvolution>;

// ---- channel mixers -----------------------------------------------------------------------------------------------

struct Mlp {
  int64_t width = 1;
  bool gated = true;
  bool bias = false;
  bool operator==(const Mlp&) const = default;
};

struct Moe {
  int64_t experts = 1, top_k = 1, width = 1;
  bool gated = true;
  bool bias = false;             // biases in the experts and the router (gpt-oss)
  bool router_bias = false;      // a correction per expert (DeepSeek-V3)
  int64_t shared_width = 0;      // all shared experts together; 0 = none
  bool shared_gate = false;      // a gate of hidden x 1 for the shared expert (Qwen2-MoE)
  int64_t dense_width = 0;       // a dense MLP beside the experts in the same layer (Gemma 4); 0 = none
  bool router_is_table = false;  // hash routing: a table token -> experts decides; the projection only weighs them
  int64_t latent_width = 0;      // experts work on a projection of this width (Kimi-K3, Nemotron-3 Super); 0 = hidden
  bool reuses_experts = false;   // router and routed experts are those of an earlier layer (Intern-S2-Mobius)
  int64_t capacity = 0;  // tokens that one expert takes of a sequence; the rest skip the layer (Switch); 0 = all
  bool operator==(const Moe&) const = default;
};

using FeedForward = std::variant<std::monostate, Mlp, Moe>;

// ---- layers -------------------------------------------------------------------------------------------------------

struct Layer {
  Mixer mixer;
  std::optional<Attention> cross_attention;  // decoder of an encoder-decoder
  FeedForward feed_forward;
  int norms = 2;                  // of width hidden, e.g. 4 in Gemma's sandwich
  bool layer_norm = false;        // weight and bias; else RMS with weight only
  bool parallel = false;          // attention and MLP read the same input (falcon, phi-2)
  int hyper_streams = 0;          // residual streams of hyper-connections; 0 = an ordinary residual
  bool draft_projection = false;  // a draft layer: 2 hidden -> hidden in front of it
  bool operator==(const Layer&) const = default;
};

struct LoraAdapter {
  int64_t rank = 0;  // 0 = none
  bool on_attention = true, on_mlp = true;
  bool operator==(const LoraAdapter&) const = default;
};

struct ExpertPopularity;  // expert_popularity.h

struct Model {
  std::string name;             // org/name, or the path it was read from
  std::string checkpoint = {};  // what an engine is told to load: the hub id or path that was asked for; empty = name
  std::string family;           // model_type
  int64_t hidden = 0, vocabulary = 0, max_positions = 0;
  int64_t embedding_width = 0;  // 0 = hidden (opt-350m projects from a narrower one)
  int64_t position_rows = 0;    // learned positions
  int64_t segment_rows = 0;     // bert token types
  bool tied_embeddings = false;
  bool has_head = true;  // language-model head
  bool head_bias = false;
  bool head_transform = false;  // bert: dense + norm before the head
  bool final_norm = true;
  bool embedding_norm = false;
  int64_t per_layer_input_width = 0;       // Gemma 4 small: each layer adds its own narrow embedding of the token
  std::vector<Layer> layers;               // decoder, or the only stack
  std::vector<Layer> encoder_layers;       // of an encoder-decoder
  std::vector<Layer> draft_layers;         // multi-token prediction heads, not part of an ordinary step
  Scheme scheme = Scheme::bf16;            // linear layers, as quantization_config says
  std::optional<Scheme> attention_scheme;  // those of attention and recurrences where they differ
  Scheme expert_scheme = Scheme::bf16;     // routed experts where they differ (gpt-oss: mxfp4)
  std::shared_ptr<const ExpertPopularity> expert_popularity;  // how tokens choose routed experts; nothing = not known
  DType dtype = DType::bf16;                                  // activations, embeddings, norms
  std::optional<DType> cache_dtype = {};    // of the KV cache where the checkpoint states one; nothing = dtype
  std::optional<double> int4_bytes = {};    // of a weight in int4_wo with its scales; nothing = groups of 128
  std::optional<Scheme> named_scheme = {};  // the format that the checkpoint's name states
  std::vector<std::string> notes;           // what a reader should know: an assumption, a part not modelled

  Scheme mixer_scheme() const { return attention_scheme.value_or(scheme); }
  bool has_experts() const;      // some layer routes tokens
  bool is_encoder_only() const;  // tokens are mixed, and nowhere causally
  bool has_latent_attention() const;
  bool has_compressed_attention() const;
  bool is_quantized() const;  // its weights are published in a narrower format than its activations
  DType kv_cache_dtype() const { return cache_dtype.value_or(dtype); }  // where nobody asks for another
  const std::string& served_name() const { return checkpoint.empty() ? name : checkpoint; }
};

}  // namespace foretoken
