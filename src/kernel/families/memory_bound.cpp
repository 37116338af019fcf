// Kernels that mostly move data: casts, norms, rotary embedding, activations, tables, sampling, stream mixing.
#include "kernel/families/list.h"
#include "kernel/families/parameters.h"

namespace foretoken {

KernelFamily quantize_family() {
  return {
      .name = "quantize_fp8",
      .summary = "cast of a bf16 [m,k] to fp8 with a known scale",
      .parameters = {choice_parameter("op", "which cast", {"static_quant"}, "static_quant"),
                     size_parameter("m", "rows", "4096"), size_parameter("k", "columns", "8192"), variant_parameter()},
      .shape = [](KernelValues v) -> KernelShape { return QuantizeShape{.m = count(v[1]), .k = count(v[2])}; }};
}

KernelFamily mhc_family() {
  return {
      .name = "mhc",
      .summary = "hyper-connections: mixing of residual streams before or after a block",
      .parameters = {choice_parameter("op", "before (pre) or after (post) the block", {"pre", "post"}, std::nullopt),
                     size_parameter("tokens", "tokens", "4096"),
                     size_parameter_or("sites", "blocks of a layer that mix", "2"),
                     size_parameter_or("hc_mult", "residual streams", "4"),
                     size_parameter("hidden", "width of the model", "7168"),
                     size_parameter_or("iters", "normalization iterations", "20", 0)},
      .shape = [](KernelValues v) -> KernelShape {
        return HyperConnectionShape{.post = v[0] == 1,
                                    .tokens = count(v[1]),
                                    .streams = count(v[3]),
                                    .hidden = count(v[4]),
                                    .iterations = count(v[5]),
                                    .sites = count(v[2])};
      }};
}

KernelFamily norm_family() {
  return {.name = "norm",
          .summary = "RMS norm or LayerNorm over rows",
          .parameters = {dtype_parameter("dtype", "of the rows", DType::bf16),
                         size_parameter("rows", "rows: tokens", "4096"),
                         size_parameter("width", "elements of a row", "8192"),
                         choice_parameter("op", "which norm", {"rms", "layer"}, "rms"),
                         yes_no_parameter("residual", "the residual add is fused", false), variant_parameter()},
          .shape = [](KernelValues v) -> KernelShape {
            return NormShape{.rows = count(v[1]),
                             .width = count(v[2]),
                             .layer_norm = v[3] == 1,
                             .adds_residual = yes(v[4]),
                             .dtype = dtype(v[0])};
          }};
}

KernelFamily rope_family() {
  return {.name = "rope",
          .summary = "rotary embedding of queries and keys",
          .parameters = {dtype_parameter("dtype", "of queries and keys", DType::bf16),
                         size_parameter("tokens", "tokens", "4096"), size_parameter("heads", "query heads", "32"),
                         size_parameter("kv_heads", "key heads", "8"),
                         size_parameter_or("rotary_dim", "elements of a head that turn", "128"), variant_parameter()},
          .shape = [](KernelValues v) -> KernelShape {
            return RopeShape{.tokens = count(v[1]),
                             .heads = count(v[2]),
                             .kv_heads = count(v[3]),
                             .rotary_dim = count(v[4]),
                             .dtype = dtype(v[0])};
          }};
}

KernelFamily activation_family() {
  return {.name = "activation",
          .summary = "SiLU, GELU and the like, gated (SwiGLU) or not",
          .parameters = {dtype_parameter("dtype", "of input and output", DType::bf16),
                         size_parameter("rows", "rows: tokens", "4096"),
                         size_parameter("width", "outputs per row", "14336"),
                         yes_no_parameter("gated", "two inputs, one multiplied with the activation of the other", true),
                         variant_parameter()},
          .shape = [](KernelValues v) -> KernelShape {
            return ActivationShape{.rows = count(v[1]), .width = count(v[2]), .gated = yes(v[3]), .dtype = dtype(v[0])};
          }};
}

KernelFamily elementwise_family() {
  return {
      .name = "elementwise",
      .summary = "any operation element by element",
      .parameters = {dtype_parameter("dtype", "of the tensors", DType::bf16),
                     {.name = "elements", .help = "elements of a tensor", .example = "33554432", .range = {1, 1e15}},
                     size_parameter_or("inputs", "tensors read", "1", 0),
                     size_parameter_or("outputs", "tensors written", "1", 0),
                     {.name = "flops_per_element",
                      .kind = ParameterKind::number,
                      .help = "operations per element",
                      .fallback = "1",
                      .example = "1",
                      .range = {0, 1e6}},
                     variant_parameter()},
      .shape = [](KernelValues v) -> KernelShape {
        return ElementwiseShape{.elements = count(v[1]),
                                .inputs = count(v[2]),
                                .outputs = count(v[3]),
                                .flops_per_element = v[4],
                                .dtype = dtype(v[0])};
      }};
}

KernelFamily softmax_family() {
  return {.name = "softmax",
          .summary = "softmax over rows",
          .parameters = {dtype_parameter("dtype", "of the rows", DType::bf16), size_parameter("rows", "rows", "4096"),
                         size_parameter("width", "elements of a row", "4096"), variant_parameter()},
          .shape = [](KernelValues v) -> KernelShape {
            return SoftmaxShape{.rows = count(v[1]), .width = count(v[2]), .dtype = dtype(v[0])};
          }};
}

KernelFamily embedding_family() {
  return {
      .name = "embedding",
      .summary = "rows of the token table",
      .parameters = {dtype_parameter("dtype", "of the table", DType::bf16), size_parameter("tokens", "tokens", "4096"),
                     size_parameter("width", "elements of a row", "8192"), variant_parameter()},
      .shape = [](KernelValues v) -> KernelShape {
        return EmbeddingShape{.tokens = count(v[1]), .width = count(v[2]), .dtype = dtype(v[0])};
      }};
}

KernelFamily kv_write_family() {
  return {.name = "kv_write",
          .summary = "copy of new keys and values into the paged cache",
          .parameters = {dtype_parameter("dtype", "of the new keys and values", DType::bf16),
                         dtype_parameter("kv_dtype", "of the cache", DType::bf16),
                         size_parameter("tokens", "new tokens", "4096"),
                         size_parameter("values", "elements per token, keys and values together", "2048"),
                         variant_parameter()},
          .shape = [](KernelValues v) -> KernelShape {
            return KvWriteShape{
                .tokens = count(v[2]), .values_per_token = count(v[3]), .dtype = dtype(v[0]), .kv_dtype = dtype(v[1])};
          }};
}

KernelFamily sampling_family() {
  return {
      .name = "sampling",
      .summary = "choice of the next token from logits",
      .parameters = {dtype_parameter("dtype", "of the logits", DType::fp32), size_parameter("rows", "sequences", "128"),
                     size_parameter("vocabulary", "logits per sequence", "128256"),
                     yes_no_parameter("greedy", "arg-max; else top-k/top-p with a sort", true), variant_parameter()},
      .shape = [](KernelValues v) -> KernelShape {
        return SamplingShape{.rows = count(v[1]), .vocabulary = count(v[2]), .greedy = yes(v[3]), .dtype = dtype(v[0])};
      }};
}

}  // namespace foretoken
