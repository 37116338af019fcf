// One fused kernel as a CPU or phone runtime runs it: what is asked, apart from how long it takes. In fp32, but for the
// kinds that are called int8 (weights, inputs and results) or int4 (weights, multiplied with inputs in 8 bits).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "model/work.h"

namespace foretoken {

// `empty` is a call that computes nothing: what the runtime takes for being called. `traffic` is any operator that no
// sweep has measured: its bytes are known, its kernel is not. `layer_norm` and `gelu` are chains of operators, the
// fused ones single operators. `quantize` finds the range of an fp32 tensor and turns it into 8 bits.
enum class EdgeKernelKind {
  convolution,
  depthwise,
  linear,
  gemv,
  batched_matmul,
  int8_convolution,
  int8_depthwise,
  int8_linear,
  int8_gemv,
  int4_linear,
  int4_gemv,
  add,
  int8_add,
  quantize,
  add_relu,
  channel_scale,
  concat,
  global_pool,
  sigmoid,
  max_pool,
  scaled_softmax,
  softmax,
  layer_norm,
  fused_layer_norm,
  gelu,
  fused_gelu,
  transpose,
  traffic,
  empty,
};

// What a kernel applies to its output before it is stored, or right after. Names as in measurements: none, relu, clip,
// swish.
enum class EdgeActivation { none, relu, clip, swish };

struct ConvolutionSizes {
  int64_t batch = 1, groups = 1;
  int64_t in_channels = 1, out_channels = 1;  // of all groups together
  int64_t in_height = 1, in_width = 1, out_height = 1, out_width = 1;
  int64_t kernel_height = 1, kernel_width = 1;
  int64_t stride = 1;
  EdgeActivation activation = EdgeActivation::none;
  bool accumulates = false;  // onto a tensor that is there already: the other branch of a residual
  bool operator==(const ConvolutionSizes&) const = default;
};

// [m, k] x [k, n], `batch` times. The right-hand side of linear and gemv is a constant of the model.
struct ProductSizes {
  int64_t batch = 1, m = 1, k = 1, n = 1;
  bool operator==(const ProductSizes&) const = default;
};

struct TensorSizes {
  int64_t elements = 1;          // of the larger side: the input of a pool, the output of a concatenation
  int64_t rows = 1;              // softmaxes and layer norms: independent rows that make up the elements
  int64_t outputs = 1;           // max_pool, traffic: elements written
  int64_t window = 1;            // max_pool: side of the window
  bool swaps_last_axes = false;  // transpose
  bool operator==(const TensorSizes&) const = default;
};

struct EdgeKernel {
  EdgeKernelKind kind = EdgeKernelKind::empty;
  std::variant<std::monostate, ConvolutionSizes, ProductSizes, TensorSizes> sizes;  // as the kind asks
  bool operator==(const EdgeKernel&) const = default;
};

EdgeKernel edge_convolution(const ConvolutionSizes& sizes);  // depthwise where every channel is its own group
EdgeKernel edge_product(EdgeKernelKind kind, const ProductSizes& sizes);
EdgeKernel edge_tensor(EdgeKernelKind kind, const TensorSizes& sizes);

// The same fp32 product or convolution in int8, or product with int4 weights. Nothing for kinds without such a kernel.
std::optional<EdgeKernel> edge_in_int8(const EdgeKernel& kernel);
std::optional<EdgeKernel> edge_in_int4(const EdgeKernel& kernel);
bool is_int8(EdgeKernelKind kind);  // convolutions and products
bool is_int4(EdgeKernelKind kind);
bool multiplies(EdgeKernelKind kind);  // convolutions and products

// The names of measurement files: conv, dwconv, linear, gemm1, bmm, ...
std::string_view edge_kind_name(EdgeKernelKind kind);
std::optional<EdgeKernelKind> edge_kind_from_name(std::string_view name);
std::vector<std::string> edge_kind_names();

// Operators of the graph that a kernel of this kind stands for where the runtime does not fuse them: 9 of a layer norm
// written out as of opset 13.
int edge_operator_count(EdgeKernelKind kind);

// A kernel as measurement files write it: its kind, and "ic=24;oc=192;h=112;oh=112;k=1;s=1;act=none". The keys `ow`,
// `w`, `kw`, `g`, `b`, `sum` extend convolutions to other than square maps and windows, groups, batches and residuals.
// InputError for unknown kinds and keys, missing keys and sizes out of range; `source` and `line` say where.
EdgeKernel parse_edge_kernel(std::string_view kind, std::string_view parameters, const std::string& source, int line);
std::string edge_parameters(const EdgeKernel& kernel);

// FLOPs and least bytes, each tensor touched once.
Work edge_work(const EdgeKernel& kernel);

}  // namespace foretoken
