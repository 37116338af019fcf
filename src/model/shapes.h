// What a kernel is asked to do: one struct per family. A model step is a list of these (step.h); kernel/ predicts their
// time and work.h counts their FLOPs and bytes. All sizes are those of ONE device, after sharding.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <variant>

#include "base/number_format.h"

namespace foretoken {

enum class Pass { forward, backward };

// y[m,n] = x[m,k] W[n,k]^T, `batch` of them with their own W (mla_bmm, attention scores).
struct GemmShape {
  int64_t m = 1, n = 1, k = 1;
  int64_t batch = 1;
  Scheme scheme = Scheme::bf16;
  bool operator==(const GemmShape&) const = default;
};

enum class AttentionPhase { prefill, decode, encoder };

// softmax(Q K^T) V for `batch` sequences. Each has q_len new tokens, and kv_len keys including the new ones.
struct AttentionShape {
  AttentionPhase phase = AttentionPhase::prefill;
  int64_t batch = 1, heads = 1, kv_heads = 1, head_dim = 128;
  int64_t value_dim = 0;  // 0 = head_dim
  int64_t q_len = 1, kv_len = 1;
  int64_t window = 0;            // keys a query may look back on, itself included; 0 = all
  bool causal = true;            // prefill; decode sees all its keys either way
  DType dtype = DType::bf16;     // queries and output
  DType kv_dtype = DType::bf16;  // the cache
  bool writes_kv = false;        // the kernel also appends the new K and V to the cache
  Pass pass = Pass::forward;
  std::optional<DType> math;  // the multiply, where the kernel is known; else fp8 with an fp8 cache, else dtype
  bool operator==(const AttentionShape&) const = default;
};

// Prompt chunks and decodes of one engine step, whose lengths differ. FlashAttention's variable-length kernels and
// Triton's unified one run all of it in one launch. Cheap to build: lengths enter as counts, a sum and a maximum.
// With a window, the caller counts a decode's keys after the window's cut.
struct MixedAttentionShape {
  // `count` prompts that each have q_len new tokens, and kv_len keys including the new ones.
  struct Prompts {
    int64_t count = 0, q_len = 1, kv_len = 1;
    bool operator==(const Prompts&) const = default;
  };
  static constexpr size_t prompt_kinds = 4;
  std::array<Prompts, prompt_kinds> prompts;  // the unused ones have count 0

  int64_t decodes = 0;         // sequences with one new token
  int64_t decode_keys = 0;     // of all of them together, the new ones included
  int64_t longest_decode = 0;  // keys of the longest

  int64_t heads = 1, kv_heads = 1, head_dim = 128;
  int64_t value_dim = 0;  // 0 = head_dim
  int64_t window = 0;     // keys a query may look back on, itself included; 0 = all
  DType dtype = DType::bf16;
  DType kv_dtype = DType::bf16;
  bool writes_kv = false;
  std::optional<DType> math;  // as in AttentionShape

  // More than prompt_kinds different lengths: those beyond are averaged into the last kind.
  void add_prompts(int64_t count, int64_t q_len, int64_t kv_len);
  void add_decodes(int64_t count, int64_t kv_len);
  int64_t prompt_count() const;
  double mean_decode() const {
    return decodes > 0 ? static_cast<double>(decode_keys) / static_cast<double>(decodes) : 0;
  }
  bool operator==(const MixedAttentionShape&) const = default;
};

// A batch of no sequences yet, with the heads and formats of `shape`.
MixedAttentionShape empty_batch_like(const AttentionShape& shape);

// Its prompts or its decodes alone.
MixedAttentionShape prompts_of(MixedAttentionShape batch);
MixedAttentionShape decodes_of(MixedAttentionShape batch);

// The equal-length calls that together do the same work: prompts by kind, then decodes at the two whole numbers around
// their mean length.
struct AttentionParts {
  std::array<AttentionShape, MixedAttentionShape::prompt_kinds + 2> calls;
  size_t count = 0;
  std::span<const AttentionShape> all() const { return {calls.data(), count}; }
};
AttentionParts equal_parts(const MixedAttentionShape& shape);

// All decodes at their mean length, rounded to a whole number of keys.
AttentionShape equal_decodes(const MixedAttentionShape& shape);

// Multi-head latent attention core. Prefill expands K and V per head; decode works on the latent (absorbed form).
struct LatentAttentionShape {
  AttentionPhase phase = AttentionPhase::prefill;
  int64_t batch = 1, heads = 1, q_len = 1, kv_len = 1;
  int64_t latent_dim = 512, rope_dim = 64, nope_dim = 128, value_dim = 128;
  int64_t top_k = 0;  // sparse attention: keys each query reads; 0 = all
  DType dtype = DType::bf16;
  DType kv_dtype = DType::bf16;
  Pass pass = Pass::forward;
  bool operator==(const LatentAttentionShape&) const = default;
};

// The absorb multiplies around MLA decode, per head: pre [tokens,nope]x[nope,latent], post
// [tokens,latent]x[latent,value].
struct LatentProjectionShape {
  bool post = false;
  int64_t tokens = 1, heads = 1, latent_dim = 512, head_dim = 128;
  Scheme scheme = Scheme::bf16;
  bool operator==(const LatentProjectionShape&) const = default;
};

// How a router spreads tokens over experts: as evenly as they go, each token by chance, or a few experts more than
// others.
enum class Routing { balanced, random, power_law, measured };
struct ExpertPopularity;  // expert_popularity.h

// DeepEP's kernels: low-latency ones for steps of few tokens and normal ones for others, or one kind for all steps
// (vLLM's deepep_high_throughput and deepep_low_latency).
enum class ExchangeKernels : uint8_t { by_tokens, normal, low_latency };

// Fused expert MLP as one rank sees it. `tokens` enter over the whole expert-parallel group; inter and experts are the
// whole layer's: a rank holds experts/ep experts of width inter/tp.
struct MoeShape {
  int64_t tokens = 1, hidden = 1, inter = 1, top_k = 1, experts = 1, tp = 1, ep = 1;
  bool gated = true;
  Routing routing = Routing::balanced;
  double power_law_exponent = 0;  // with power_law: how skewed. Of several ranks the most loaded one counts
  Scheme scheme = Scheme::bf16;
  Pass pass = Pass::forward;
  std::shared_ptr<const ExpertPopularity> popularity = nullptr;  // with measured
  // Each token was sent to the ranks of its experts and to no others (DeepEP), so kernels do not walk all tokens.
  bool received = false;
  ExchangeKernels kernels = ExchangeKernels::by_tokens;  // that sent them
  bool operator==(const MoeShape&) const = default;
};

// DeepEP's low-latency kernels take up to this many tokens of a rank (engines raise its default of 128).
constexpr int64_t most_tokens_of_low_latency_dispatch = 256;
constexpr bool travels_with_low_latency(const MoeShape& shape) {
  if (shape.kernels != ExchangeKernels::by_tokens) return shape.kernels == ExchangeKernels::low_latency;
  return shape.tokens <= most_tokens_of_low_latency_dispatch * shape.ep;
}
// Whether tokens arrive sorted by expert: low-latency kernels do that; after normal ones the receiver sorts.
constexpr bool arrives_sorted(const MoeShape& shape) {
  return shape.received && travels_with_low_latency(shape);
}

// bf16 -> fp8 cast of [m,k].
struct QuantizeShape {
  int64_t m = 1, k = 1;
  bool operator==(const QuantizeShape&) const = default;
};

enum class LinearAttentionKind { gdn, kda, mamba2, lightning };
// The short convolution before the recurrence, or the recurrence itself.
enum class LinearAttentionStage { convolution, recurrence };

// A recurrent mixer with a fixed-size state per sequence.
struct LinearAttentionShape {
  LinearAttentionKind kind = LinearAttentionKind::gdn;
  LinearAttentionStage stage = LinearAttentionStage::recurrence;
  bool decode = false;
  int64_t batch = 1, seq_len = 1;
  int64_t key_heads = 1, key_dim = 128;      // mamba2: groups and state size
  int64_t value_heads = 1, value_dim = 128;  // mamba2: heads and head size
  int64_t conv_kernel = 4, chunk = 64;
  DType dtype = DType::bf16;
  Pass pass = Pass::forward;
  bool operator==(const LinearAttentionShape&) const = default;
};

// Hyper-connection mixing (DeepSeek-V4): `streams` residual streams mixed before or after a block.
struct HyperConnectionShape {
  bool post = false;
  int64_t tokens = 1, streams = 4, hidden = 1, iterations = 20, sites = 1;
  bool operator==(const HyperConnectionShape&) const = default;
};

struct NormShape {
  int64_t rows = 1, width = 1;
  bool layer_norm = false;     // else RMS
  bool adds_residual = false;  // fused residual add: reads and writes the stream too
  DType dtype = DType::bf16;
  Pass pass = Pass::forward;
  bool operator==(const NormShape&) const = default;
};

struct RopeShape {
  int64_t tokens = 1, heads = 1, kv_heads = 1, rotary_dim = 128;
  DType dtype = DType::bf16;
  bool operator==(const RopeShape&) const = default;
};

// gated: out[rows,width] = act(a) * b with a and b of that size; else out = act(a).
struct ActivationShape {
  int64_t rows = 1, width = 1;
  bool gated = true;
  DType dtype = DType::bf16;
  Pass pass = Pass::forward;
  bool operator==(const ActivationShape&) const = default;
};

struct ElementwiseShape {
  int64_t elements = 1;
  int64_t inputs = 1, outputs = 1;  // tensors of that many elements
  double flops_per_element = 1;
  DType dtype = DType::bf16;
  bool operator==(const ElementwiseShape&) const = default;
};

struct SoftmaxShape {
  int64_t rows = 1, width = 1;
  DType dtype = DType::bf16;
  bool operator==(const SoftmaxShape&) const = default;
};

struct EmbeddingShape {
  int64_t tokens = 1, width = 1;
  DType dtype = DType::bf16;
  Pass pass = Pass::forward;
  bool operator==(const EmbeddingShape&) const = default;
};

// Copies new K and V (or the latent) into the paged cache.
struct KvWriteShape {
  int64_t tokens = 1;
  int64_t values_per_token = 1;  // K and V together
  DType dtype = DType::bf16;
  DType kv_dtype = DType::bf16;
  bool operator==(const KvWriteShape&) const = default;
};

// Chooses the next token from logits: arg-max, or top-k/top-p with a sort.
struct SamplingShape {
  int64_t rows = 1, vocabulary = 1;
  bool greedy = true;
  DType dtype = DType::fp32;
  bool operator==(const SamplingShape&) const = default;
};

struct ConvShape {
  int64_t batch = 1, in_channels = 1, out_channels = 1;
  int64_t height = 1, width = 1;
  int64_t kernel_height = 1, kernel_width = 1, stride = 1, padding = 0, dilation = 1, groups = 1;
  Scheme scheme = Scheme::bf16;
  bool operator==(const ConvShape&) const = default;
};

struct PoolShape {
  int64_t batch = 1, channels = 1, height = 1, width = 1, kernel = 2, stride = 2;
  DType dtype = DType::bf16;
  bool operator==(const PoolShape&) const = default;
};

enum class SparseProduct { spmm, sddmm };

// Where the nonzeros of a sparse matrix lie: anywhere with equal chance; rows and columns of very unequal numbers, as
// in web and social graphs; or near the diagonal, as in meshes and in graphs that were reordered.
enum class SparsePattern { uniform, power, band };

// A sparse matrix S [rows, columns] with `nonzeros` entries, in compressed rows.
// spmm: y[rows, features] = S x[columns, features]. sddmm: at each nonzero (i, j), a[i, :] . b[:, j], over `features`.
struct SparseShape {
  SparseProduct product = SparseProduct::spmm;
  SparsePattern pattern = SparsePattern::uniform;
  int64_t rows = 1, columns = 1, nonzeros = 1, features = 1;
  int64_t longest_row = 1;  // nonzeros of the row that has most
  DType dtype = DType::fp32;
  bool operator==(const SparseShape&) const = default;
};

enum class CollectiveKind {
  all_reduce,
  all_gather,
  reduce_scatter,
  all_to_all,
  broadcast,
  reduce,
  gather,
  scatter,
  barrier,
  send_recv
};
inline constexpr std::string_view collective_kind_names[] = {"all_reduce", "all_gather", "reduce_scatter", "all_to_all",
                                                             "broadcast",  "reduce",     "gather",         "scatter",
                                                             "barrier",    "send_recv"};
std::string_view collective_kind_name(CollectiveKind kind);
std::optional<CollectiveKind> collective_kind_from_name(std::string_view name);

// The process group a collective runs in.
enum class ParallelAxis { tensor, pipeline, data, expert, context };

// Not a kernel of one device: network/ predicts it. `bytes` follows nccl-tests: buffer per rank (all-reduce, broadcast,
// reduce, send), whole output (all-gather, gather at its root), whole input (reduce-scatter, all-to-all, scatter at its
// root). A barrier carries none.
struct CollectiveShape {
  CollectiveKind kind = CollectiveKind::all_reduce;
  ParallelAxis axis = ParallelAxis::tensor;
  int64_t ranks = 1;
  double bytes = 0;
  bool returns = false;  // on the expert axis: results on their way back to the tokens' ranks
  bool operator==(const CollectiveShape&) const = default;
};

using KernelShape =
    std::variant<GemmShape, AttentionShape, MixedAttentionShape, LatentAttentionShape, LatentProjectionShape, MoeShape,
                 QuantizeShape, LinearAttentionShape, HyperConnectionShape, NormShape, RopeShape, ActivationShape,
                 ElementwiseShape, SoftmaxShape, EmbeddingShape, KvWriteShape, SamplingShape, ConvShape, PoolShape,
                 SparseShape, CollectiveShape>;

// A batch of one kind and one length as the plain call that it is; else the batch itself.
KernelShape simplest_shape(const MixedAttentionShape& shape);

// Whether the call is of a backward pass.
bool is_backward(const KernelShape& shape);

// The family users know a shape by: "gemm", "attention_prefill", "mla_decode", "linattn_gdn", "norm", ...
std::string_view family_name(const KernelShape& shape);

}  // namespace foretoken
