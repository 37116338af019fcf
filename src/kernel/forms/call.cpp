#include "kernel/forms/call.h"

#include <algorithm>

#include "kernel/forms/form_math.h"

#include <fmt/format.h>

#include "kernel/forms/eager_memory_form.h"

namespace foretoken {
namespace {

// The two 16-bit formats run at the same rates.
std::string scheme_group(Scheme scheme) {
  return std::string(facts(scheme == Scheme::fp16 ? Scheme::bf16 : scheme).name);
}
std::string dtype_group(DType type) {
  return std::string(dtype_name(type == DType::fp16 ? DType::bf16 : type));
}

struct GroupOf {
  std::string_view variant;

  std::string operator()(const GemmShape& s) const {
    // Plain fp32 multiplies in batches are other kernels: operands in other orders, and no bias.
    return scheme_group(s.scheme) + (s.scheme == Scheme::fp32 && s.batch > 1 ? " batched" : "");
  }
  std::string operator()(const MoeShape& s) const { return scheme_group(s.scheme) + (s.gated ? "" : " ungated"); }
  std::string operator()(const AttentionShape& s) const {
    // TensorRT-LLM multiplies an fp8 cache in either format; elsewhere the kernel decides.
    const bool chooses_fp8 = variant == "trtllm" && s.phase == AttentionPhase::prefill && s.math == DType::fp8;
    return chooses_fp8 ? "fp8-fp8" : dtype_group(s.kv_dtype);
  }
  std::string operator()(const MixedAttentionShape& s) const {
    return dtype_group(s.kv_dtype) + (s.prompt_count() > 0 ? " mixed" : "");
  }
  std::string operator()(const LatentAttentionShape& s) const { return dtype_group(s.kv_dtype); }
  std::string operator()(const LatentProjectionShape& s) const {
    return scheme_group(s.scheme) + (s.post ? " post" : " pre");
  }
  // In fp32 the framework's two kernels for softmax, and the library's for 1x1 convolutions, are told apart.
  std::string operator()(const SoftmaxShape& s) const {
    const bool in_registers = s.dtype == DType::fp32 && s.width <= longest_warp_softmax;
    return in_registers ? "softmax in registers" : "softmax";
  }
  std::string operator()(const ConvShape& s) const {
    return s.kernel_height == 1 && s.kernel_width == 1 ? "conv 1x1" : "conv";
  }
  std::string operator()(const SparseShape& s) const {
    return std::string(family_name(KernelShape(s))) + " " + dtype_group(s.dtype);
  }
  std::string operator()(const LinearAttentionShape& s) const {
    return std::string(family_name(KernelShape(s))) +
           (s.stage == LinearAttentionStage::convolution ? " convolution" : " recurrence") +
           (s.decode ? " decode" : " prefill");
  }
  std::string operator()(const HyperConnectionShape& s) const { return s.post ? "mhc post" : "mhc pre"; }
  std::string operator()(const SamplingShape& s) const { return s.greedy ? "arg_max" : "sort"; }
  std::string operator()(const NormShape& s) const { return s.layer_norm ? "layer_norm" : "rms_norm"; }
  template <class Other>
  std::string operator()(const Other& s) const {
    return std::string(family_name(KernelShape(s)));
  }
};

struct PromptSums {
  int64_t queries = 0, keys = 0;
};
PromptSums prompt_sums(const MixedAttentionShape& shape) {
  PromptSums sums;
  for (const MixedAttentionShape::Prompts& kind : shape.prompts) {
    sums.queries += kind.count * kind.q_len;
    sums.keys += kind.count * kind.kv_len;
  }
  return sums;
}

using Raw = std::array<float, raw_feature_count>;

template <class... Size>
Raw logarithms(Size... sizes) {
  static_assert(sizeof...(sizes) <= raw_feature_count);
  Raw raw{};
  size_t i = 0;
  ((raw[i++] = static_cast<float>(quick_log2(std::max(static_cast<double>(sizes), 0.5)))), ...);
  return raw;
}

// Of measured routings, the power law that a benchmark meant.
double skew(const MoeShape& shape) {
  const bool has_exponent = shape.routing == Routing::power_law || shape.routing == Routing::measured;
  return has_exponent ? shape.power_law_exponent : 0;
}

struct RawOf {
  Raw operator()(const GemmShape& s) const { return logarithms(s.m, s.n, s.k, s.m * s.n, s.n * s.k, s.batch); }
  Raw operator()(const AttentionShape& s) const {
    return logarithms(s.batch, s.heads, s.kv_heads, s.head_dim, s.q_len, s.kv_len, s.window, s.batch * s.heads);
  }
  Raw operator()(const MixedAttentionShape& s) const {
    if (s.prompt_count() == 0) return (*this)(equal_decodes(s));
    const PromptSums sums = prompt_sums(s);
    return logarithms(sums.queries, sums.keys, s.decodes, s.decode_keys, s.longest_decode, s.heads, s.kv_heads,
                      s.head_dim);
  }
  Raw operator()(const LatentAttentionShape& s) const {
    return logarithms(s.batch, s.heads, s.q_len, s.kv_len, s.batch * s.heads);
  }
  Raw operator()(const LatentProjectionShape& s) const { return logarithms(s.tokens, s.heads, s.tokens * s.heads); }
  Raw operator()(const SamplingShape& s) const { return logarithms(s.rows, s.vocabulary, s.rows * s.vocabulary); }
  Raw operator()(const MoeShape& s) const {
    Raw raw = logarithms(s.tokens, s.hidden, s.inter, s.top_k, s.experts, s.tp, s.ep);
    raw[7] = static_cast<float>(skew(s));
    return raw;
  }
  Raw operator()(const ConvShape& s) const {
    return logarithms(s.batch, s.in_channels, s.out_channels, s.height, s.kernel_height, s.stride, s.padding,
                      s.height * s.width * s.batch);
  }
  Raw operator()(const SparseShape& s) const {
    return logarithms(s.rows, s.columns, s.nonzeros, s.longest_row, s.features, s.nonzeros * s.features);
  }
  Raw operator()(const LinearAttentionShape& s) const {
    return logarithms(s.batch, s.seq_len, s.batch * s.seq_len, s.key_heads, s.key_dim, s.value_heads, s.value_dim,
                      s.batch * s.value_heads);
  }
  Raw operator()(const HyperConnectionShape& s) const {
    return logarithms(s.tokens, s.streams, s.hidden, s.iterations, s.sites);
  }
  Raw operator()(const QuantizeShape& s) const { return logarithms(s.m, s.k, s.m * s.k); }
  Raw operator()(const NormShape& s) const {
    return logarithms(s.rows, s.width, s.rows * s.width, s.adds_residual ? 2 : 1);
  }
  Raw operator()(const RopeShape& s) const { return logarithms(s.tokens, s.heads, s.kv_heads, s.rotary_dim); }
  Raw operator()(const ActivationShape& s) const {
    return logarithms(s.rows, s.width, s.rows * s.width, s.gated ? 2 : 1);
  }
  Raw operator()(const SoftmaxShape& s) const { return logarithms(s.rows, s.width, s.rows * s.width); }
  Raw operator()(const EmbeddingShape& s) const { return logarithms(s.tokens, s.width, s.tokens * s.width); }
  Raw operator()(const KvWriteShape& s) const { return logarithms(s.tokens, s.values_per_token); }
  Raw operator()(const ElementwiseShape& s) const { return logarithms(s.elements, s.inputs, s.outputs); }
  template <class Other>
  Raw operator()(const Other& /*no form*/) const {
    return {};
  }
};

using Named = std::vector<NamedSize>;

// In the order of RawOf; a test compares the two.
struct NamedOf {
  static double number(int64_t size) { return static_cast<double>(size); }
  Named operator()(const GemmShape& s) const {
    return {{"m", number(s.m)},           {"n", number(s.n)},           {"k", number(s.k)},
            {"m x n", number(s.m * s.n)}, {"n x k", number(s.n * s.k)}, {"batch", number(s.batch)}};
  }
  Named operator()(const AttentionShape& s) const {
    return {{"batch", number(s.batch)},       {"heads", number(s.heads)},
            {"kv_heads", number(s.kv_heads)}, {"head_dim", number(s.head_dim)},
            {"q_len", number(s.q_len)},       {"kv_len", number(s.kv_len)},
            {"window", number(s.window)},     {"batch x heads", number(s.batch * s.heads)}};
  }
  Named operator()(const MixedAttentionShape& s) const {
    if (s.prompt_count() == 0) return (*this)(equal_decodes(s));
    const PromptSums sums = prompt_sums(s);
    return {{"prompt tokens", number(sums.queries)},
            {"prompt keys", number(sums.keys)},
            {"decodes", number(s.decodes)},
            {"decode keys", number(s.decode_keys)},
            {"longest decode", number(s.longest_decode)},
            {"heads", number(s.heads)},
            {"kv_heads", number(s.kv_heads)},
            {"head_dim", number(s.head_dim)}};
  }
  Named operator()(const LatentAttentionShape& s) const {
    return {{"batch", number(s.batch)},
            {"heads", number(s.heads)},
            {"q_len", number(s.q_len)},
            {"kv_len", number(s.kv_len)},
            {"batch x heads", number(s.batch * s.heads)}};
  }
  Named operator()(const LatentProjectionShape& s) const {
    return {{"tokens", number(s.tokens)}, {"heads", number(s.heads)}, {"tokens x heads", number(s.tokens * s.heads)}};
  }
  Named operator()(const SamplingShape& s) const {
    return {{"rows", number(s.rows)},
            {"vocabulary", number(s.vocabulary)},
            {"rows x vocabulary", number(s.rows * s.vocabulary)}};
  }
  Named operator()(const MoeShape& s) const {
    return {{"tokens", number(s.tokens)}, {"hidden", number(s.hidden)},   {"inter", number(s.inter)},
            {"topk", number(s.top_k)},    {"experts", number(s.experts)}, {"tp", number(s.tp)},
            {"ep", number(s.ep)},         {"skew", skew(s), false}};
  }
  Named operator()(const ConvShape& s) const {
    return {{"batch", number(s.batch)},
            {"in_channels", number(s.in_channels)},
            {"out_channels", number(s.out_channels)},
            {"height", number(s.height)},
            {"kernel_h", number(s.kernel_height)},
            {"stride", number(s.stride)},
            {"padding", number(s.padding)},
            {"pixels", number(s.height * s.width * s.batch)}};
  }
  Named operator()(const SparseShape& s) const {
    return {{"rows", number(s.rows)},         {"columns", number(s.columns)},
            {"nnz", number(s.nonzeros)},      {"max_row", number(s.longest_row)},
            {"features", number(s.features)}, {"nnz x features", number(s.nonzeros * s.features)}};
  }
  Named operator()(const QuantizeShape& s) const {
    return {{"m", number(s.m)}, {"k", number(s.k)}, {"m x k", number(s.m * s.k)}};
  }
  template <class Rows>
  static Named rows_of(const Rows& s) {
    return {{"rows", number(s.rows)}, {"width", number(s.width)}, {"rows x width", number(s.rows * s.width)}};
  }
  Named operator()(const NormShape& s) const {
    Named sizes = rows_of(s);
    sizes.push_back({"streams", s.adds_residual ? 2.0 : 1.0});
    return sizes;
  }
  Named operator()(const RopeShape& s) const {
    return {{"tokens", number(s.tokens)},
            {"heads", number(s.heads)},
            {"kv_heads", number(s.kv_heads)},
            {"rotary_dim", number(s.rotary_dim)}};
  }
  Named operator()(const ActivationShape& s) const {
    Named sizes = rows_of(s);
    sizes.push_back({"inputs", s.gated ? 2.0 : 1.0});
    return sizes;
  }
  Named operator()(const SoftmaxShape& s) const { return rows_of(s); }
  Named operator()(const EmbeddingShape& s) const {
    return {{"tokens", number(s.tokens)}, {"width", number(s.width)}, {"tokens x width", number(s.tokens * s.width)}};
  }
  Named operator()(const KvWriteShape& s) const {
    return {{"tokens", number(s.tokens)}, {"values", number(s.values_per_token)}};
  }
  Named operator()(const ElementwiseShape& s) const {
    return {{"elements", number(s.elements)}, {"inputs", number(s.inputs)}, {"outputs", number(s.outputs)}};
  }
  template <class Other>
  Named operator()(const Other& /*no form*/) const {
    return {};
  }
};

}  // namespace

std::string call_formats(const FormCall& call) {
  return std::visit(GroupOf{call.variant}, call.shape);
}

std::string call_group(const FormCall& call) {
  const std::string formats = call_formats(call);
  return call.variant.empty() ? formats : call.variant + " " + formats;
}

std::string call_model(const FormCall& call) {
  const auto* mixed = std::get_if<MixedAttentionShape>(&call.shape);
  return mixed != nullptr ? fmt::format("{}/{}x{}", mixed->heads, mixed->kv_heads, mixed->head_dim) : "";
}

std::string call_layer(const FormCall& call) {
  if (const auto* gemm = std::get_if<GemmShape>(&call.shape)) return fmt::format("{}x{}", gemm->n, gemm->k);
  if (const auto* moe = std::get_if<MoeShape>(&call.shape))
    return fmt::format("{}x{}x{} top {}", moe->hidden, moe->inter, moe->experts, moe->top_k);
  return call_model(call);
}

std::array<float, raw_feature_count> raw_features(const FormCall& call) {
  return std::visit(RawOf{}, call.shape);
}

std::vector<NamedSize> named_sizes(const KernelShape& shape) {
  return std::visit(NamedOf{}, shape);
}

namespace {

// Of the sheet's bandwidth, over what kernels of boards with memory of their own reach. On a GB10 a kernel that only
// reads gets 231 to 234 of 273 GB/s (github.com/antirez/ds4, issue 773), 0.85; streaming kernels of swept boards get
// 0.97 of theirs.
double shared_memory_share(const Device& device) {
  const MemoryType type = device.memory_type ? device.memory_type->value : kernel_generation(device).usual_memory;
  return type == MemoryType::lpddr5 || type == MemoryType::lpddr5x ? 0.85 / 0.97 : 1;
}

}  // namespace

TraitsOfDevice traits_of(const Device& device) {
  TraitsOfDevice result;
  DeviceTraits& traits = result.traits;
  const GpuGeneration& generation = kernel_generation(device);
  result.complete = device.processors && device.boost_clock && device.last_level_cache && device.memory_bandwidth &&
                    !generation.key.empty();
  if (!result.complete) return result;
  traits.processors = device.processors->value;
  traits.clock = device.boost_clock->value.value();
  if (device.held_clock_factor) traits.held_clock = device.held_clock_factor->value;
  traits.cache = device.last_level_cache->value.value();
  traits.bandwidth = device.memory_bandwidth->value.value() * shared_memory_share(device);
  traits.generation = &generation;
  traits.asynchronous = has_asynchronous_multiplies(device);
  traits.stacked_memory = has_stacked_memory(device);
  traits.inline_ecc = device.inline_ecc_memory.has_value();
  traits.amd = generation.amd;
  traits.exponentials_per_clock = exponentials_per_clock(device);
  traits.power = device.power_limit ? device.power_limit->value.value() : 0;
  for (int type = 0; type < dtype_count; ++type) {
    const auto peak = device.peak_or_fallback(static_cast<DType>(type));
    traits.peak[static_cast<size_t>(type)] = peak ? peak->value() : 0;
  }
  for (size_t scheme = 0; scheme < scheme_count; ++scheme) {
    const auto& reached = device.reached_peak[scheme];
    traits.reached[scheme] = reached ? reached->value.value() : 0;
  }
  return result;
}

}  // namespace foretoken
