#include "kernel/edge/edge_laws.h"

#include <algorithm>

#include "base/error.h"
#include "kernel/forms/form_math.h"

namespace foretoken {
namespace {

double round_up(double size, int64_t tile) {
  return ceil_ratio(size, as_double(tile)) * as_double(tile);
}

// One of `count` equal products [m, k] x [k, n].
struct MatrixWork {
  double count = 1, m = 1, n = 1, k = 1;

  double outputs() const { return count * m * n; }
  double multiply_adds() const { return outputs() * k; }
  double tiled(const EdgeCore& core) const {
    return count * round_up(m, core.tile_rows) * round_up(n, core.tile_columns) * k;
  }
  double stores(const EdgeCore& core) const { return count * m * n * ceil_ratio(k, as_double(core.depth_block)); }
};

MatrixWork matrix_work(const ConvolutionSizes& c) {
  return {.count = as_double(c.batch) * as_double(c.groups),
          .m = as_double(c.out_channels) / as_double(c.groups),
          .n = as_double(c.out_height) * as_double(c.out_width),
          .k = as_double(c.in_channels) / as_double(c.groups) * as_double(c.kernel_height) * as_double(c.kernel_width)};
}

// A window's elements laid out as columns, so that a convolution becomes a product (im2col). A 1x1 window with stride 1
// needs none of it. With stride 1 the elements of a row of outputs are copied in one go, else one by one.
struct ColumnWork {
  double copied = 0, copied_rows = 0, gathered = 0, gathered_rows = 0;
};

ColumnWork column_work(const ConvolutionSizes& c, const MatrixWork& work) {
  const double elements = work.count * work.k * work.n, rows = work.count * work.k * as_double(c.out_height);
  if (c.stride > 1) return {.gathered = elements, .gathered_rows = rows};
  if (c.kernel_height * c.kernel_width == 1) return {};
  return {.copied = elements, .copied_rows = rows};
}

// Prices of that, in the order of put_columns.
constexpr EdgePrice copy_price{"copy", 0.1, "element copied from its window into the column matrix, stride 1"};
constexpr EdgePrice copy_row_price{"copy_row", 4,
                                   "row of outputs whose elements are copied so, for each row of the column matrix"};
constexpr EdgePrice gather_price{"gather", 0.5,
                                 "element copied from its window into the column matrix, larger strides"};
constexpr EdgePrice gather_row_price{"gather_row", 4,
                                     "row of outputs whose elements are copied so, for each row of the column matrix"};

void put_columns(const ColumnWork& columns, std::span<double> out, size_t& i) {
  out[i++] = columns.copied;
  out[i++] = columns.copied_rows;
  out[i++] = columns.gathered;
  out[i++] = columns.gathered_rows;
}

double input_elements(const ConvolutionSizes& c) {
  return as_double(c.batch) * as_double(c.in_channels) * as_double(c.in_height) * as_double(c.in_width);
}

constexpr EdgePrice convolution_prices[] = {
    {"call", 12000, "call"},
    {"multiply", 0.02, "multiply-add"},
    {"tile", 0.02, "multiply-add, rows and columns rounded up to the tile"},
    {"pack", 0.1, "element of the column matrix packed for the inner loop"},
    copy_price,
    copy_row_price,
    gather_price,
    gather_row_price,
    {"store", 0.1, "partial result stored"},
    {"filter", 0.01, "filter element read, once for each block of output positions"},
    {"map", 0.1, "input element"},
    {"clamp", 0.1, "output element clamped: relu, clip"},
    {"swish", 2, "output element times its sigmoid"},
};

void convolution_amounts(const EdgeKernel& kernel, const EdgeCore& core, std::span<double> out) {
  const auto& c = std::get<ConvolutionSizes>(kernel.sizes);
  const MatrixWork work = matrix_work(c);
  const double outputs = work.outputs();
  const bool clamps = c.activation == EdgeActivation::relu || c.activation == EdgeActivation::clip;
  size_t i = 0;
  out[i++] = 1;
  out[i++] = work.multiply_adds();
  out[i++] = work.tiled(core);
  out[i++] = work.count * work.k * work.n;
  const ColumnWork columns = column_work(c, work);
  put_columns(columns, out, i);
  // What it accumulates onto is one more partial result.
  out[i++] = work.stores(core) + (c.accumulates ? outputs : 0);
  out[i++] = work.count * work.m * work.k * ceil_ratio(work.n, as_double(core.depth_block));
  out[i++] = input_elements(c);
  out[i++] = clamps ? outputs : 0;
  out[i++] = c.activation == EdgeActivation::swish ? outputs : 0;
}

constexpr EdgePrice depthwise_prices[] = {
    {"call", 12000, "call"},
    {"channel", 100, "channel"},
    {"window", 0.5, "tap of an output position, for all channels together: what channels-last runtimes walk"},
    {"wide_window", 0.5, "the same, for taps beyond the ninth"},
    {"multiply", 0.05, "multiply-add"},
    copy_price,
    copy_row_price,
    gather_price,
    gather_row_price,
    {"output", 0.2, "output element"},
    {"map", 0.1, "input element"},
    {"clamp", 0.1, "output element clamped: relu, clip"},
    {"swish", 2, "output element times its sigmoid"},
};

void depthwise_amounts(const EdgeKernel& kernel, const EdgeCore& /*core*/, std::span<double> out) {
  const auto& c = std::get<ConvolutionSizes>(kernel.sizes);
  const MatrixWork work = matrix_work(c);
  const ColumnWork columns = column_work(c, work);
  const double outputs = work.outputs();
  const bool clamps = c.activation == EdgeActivation::relu || c.activation == EdgeActivation::clip;
  size_t i = 0;
  out[i++] = 1;
  out[i++] = work.count;
  const double positions = as_double(c.batch) * work.n;
  out[i++] = positions * work.k;
  out[i++] = positions * std::max(0.0, work.k - 9);
  out[i++] = work.multiply_adds();
  put_columns(columns, out, i);
  out[i++] = outputs * (c.accumulates ? 2 : 1);
  out[i++] = input_elements(c);
  out[i++] = clamps ? outputs : 0;
  out[i++] = c.activation == EdgeActivation::swish ? outputs : 0;
}

// Runtimes multiply 8-bit maps without columns where channels fill the lanes of a register (16 of the result, 4 of the
// input for a dot product): another kernel, with prices of its own. A 1x1 window is a product either way.
bool is_direct(const ConvolutionSizes& c) {
  constexpr int64_t lanes = 16, dot_lanes = 4;
  const bool depthwise = c.groups == c.in_channels && c.groups == c.out_channels && c.groups > 1;
  if (depthwise) return c.in_channels % lanes == 0;
  return c.kernel_height * c.kernel_width > 1 && c.out_channels / c.groups % lanes == 0 &&
         c.in_channels / c.groups % dot_lanes == 0;
}

constexpr EdgePrice int8_convolution_prices[] = {
    {"call", 12000, "call"},
    {"multiply", 0.005, "multiply-add"},
    {"tile", 0.005, "multiply-add, rows and columns rounded up to the tile"},
    {"pack", 0.1, "element of the column matrix packed for the inner loop"},
    copy_price,
    copy_row_price,
    gather_price,
    gather_row_price,
    {"store", 0.1, "partial result stored"},
    {"filter", 0.01, "filter element read, once for each block of output positions"},
    {"map", 0.1, "input element"},
    {"direct", 0.01, "multiply-add without columns"},
    {"direct_tap", 1, "tap of an output position, without columns"},
    {"direct_output", 0.1, "output element, without columns"},
    {"direct_filter", 0.01, "filter element read, once for each block of output positions, without columns"},
};

void int8_convolution_amounts(const EdgeKernel& kernel, const EdgeCore& core, std::span<double> out) {
  const auto& c = std::get<ConvolutionSizes>(kernel.sizes);
  const MatrixWork work = matrix_work(c);
  const double filter = work.count * work.m * work.k * ceil_ratio(work.n, as_double(core.depth_block));
  std::fill(out.begin(), out.end(), 0.0);
  out[0] = 1;
  if (is_direct(c)) {
    out[11] = work.multiply_adds();
    out[12] = work.n * as_double(c.batch) * as_double(c.kernel_height) * as_double(c.kernel_width);
    out[13] = work.outputs();
    out[14] = filter;
    return;
  }
  const ColumnWork columns = column_work(c, work);
  size_t i = 1;
  out[i++] = work.multiply_adds();
  out[i++] = work.tiled(core);
  out[i++] = work.count * work.k * work.n;
  put_columns(columns, out, i);
  out[i++] = work.stores(core);
  out[i++] = filter;
  out[i++] = input_elements(c);
}

constexpr EdgePrice int8_depthwise_prices[] = {
    {"call", 12000, "call"},
    {"channel", 10, "channel"},
    {"window", 0.5, "tap of an output position, for all channels together"},
    {"multiply", 0.05, "multiply-add"},
    {"wide_multiply", 0.05, "multiply-add of taps beyond the ninth"},
    {"output", 0.2, "output element"},
    {"map", 0.1, "input element"},
    {"direct_window", 0.5, "tap of an output position, where channels fill registers"},
    {"direct_multiply", 0.02, "multiply-add, where channels fill registers"},
    {"direct_wide_multiply", 0.02, "multiply-add of taps beyond the ninth, where channels fill registers"},
    {"direct_output", 0.1, "output element, where channels fill registers"},
};

void int8_depthwise_amounts(const EdgeKernel& kernel, const EdgeCore& /*core*/, std::span<double> out) {
  const auto& c = std::get<ConvolutionSizes>(kernel.sizes);
  const MatrixWork work = matrix_work(c);
  const double taps = as_double(c.batch) * work.n * work.k, wide = work.outputs() * std::max(0.0, work.k - 9);
  std::fill(out.begin(), out.end(), 0.0);
  out[0] = 1;
  if (is_direct(c)) {
    out[7] = taps;
    out[8] = work.multiply_adds();
    out[9] = wide;
    out[10] = work.outputs();
    return;
  }
  out[1] = work.count;
  out[2] = taps;
  out[3] = work.multiply_adds();
  out[4] = wide;
  out[5] = work.outputs();
  out[6] = input_elements(c);
}

constexpr EdgePrice product_prices[] = {
    {"call", 12000, "call"},
    {"multiply", 0.02, "multiply-add"},
    {"tile", 0.02, "multiply-add, rows and columns rounded up to the tile"},
    {"right", 0.1, "element of the right-hand side, read from the core's own cache"},
    {"right_far", 0.1, "element of the right-hand side, read from beyond it"},
    {"right_memory", 0.1, "element of the right-hand side, read from memory"},
    {"left", 0.1, "element of the left-hand side"},
    {"store", 0.1, "partial result stored"},
    {"output", 0.1, "result, biased and copied"},
    {"product", 100, "product of the batch"},
};

// Runtimes have kernels for few rows too. These wait for the right-hand side, of which a core loads two registers while
// it multiplies four, so that they take at least half as long as a full tile. Products by constants have prices of
// their own for one row; the shipped sweeps of those by other tensors begin at 16.
double tiled_product(EdgeKernelKind kind, const MatrixWork& work, const EdgeCore& core) {
  if (kind != EdgeKernelKind::batched_matmul || work.m > as_double(core.tile_rows / 2)) return work.tiled(core);
  return work.tiled(core) / 2;
}

void product_amounts(const EdgeKernel& kernel, const EdgeCore& core, std::span<double> out) {
  const auto& p = std::get<ProductSizes>(kernel.sizes);
  const MatrixWork work{.count = as_double(p.batch), .m = as_double(p.m), .n = as_double(p.n), .k = as_double(p.k)};
  const double right = work.count * work.k * work.n;
  const DType type = is_int8(kernel.kind) ? DType::int8 : is_int4(kernel.kind) ? DType::int4 : DType::fp32;
  // Products of many rows hide the way to memory behind their multiplications.
  const bool waits = kernel.kind == EdgeKernelKind::gemv || kernel.kind == EdgeKernelKind::int8_gemv ||
                     kernel.kind == EdgeKernelKind::int4_gemv;
  const double touched = std::max(right * bytes_per_element(type), waits ? core.touched_between : 0);
  const CacheSplit split = cache_split(right, touched, core);
  const double from_memory = split.far * memory_share(touched, core);
  size_t i = 0;
  out[i++] = 1;
  out[i++] = work.multiply_adds();
  out[i++] = tiled_product(kernel.kind, work, core);
  out[i++] = split.near;
  out[i++] = split.far - from_memory;
  out[i++] = from_memory;
  out[i++] = work.count * work.m * work.k;
  out[i++] = work.stores(core);
  out[i++] = work.outputs();
  out[i++] = work.count;
}

constexpr EdgePrice element_prices[] = {
    {"call", 12000, "call"},
    {"near", 0.5, "element in the core's own cache"},
    {"far", 0.5, "element beyond it"},
};

void element_amounts(const EdgeKernel& kernel, const EdgeCore& core, std::span<double> out) {
  const auto& t = std::get<TensorSizes>(kernel.sizes);
  const CacheSplit split = cache_split(as_double(t.elements), edge_work(kernel).bytes().value(), core);
  out[0] = 1;
  out[1] = split.near;
  out[2] = split.far;
}

constexpr EdgePrice row_prices[] = {
    {"call", 12000, "call"},
    {"near", 0.5, "element in the core's own cache"},
    {"far", 0.5, "element beyond it"},
    {"row", 10, "row"},
};

void row_amounts(const EdgeKernel& kernel, const EdgeCore& core, std::span<double> out) {
  element_amounts(kernel, core, out);
  out[3] = as_double(std::get<TensorSizes>(kernel.sizes).rows);
}

constexpr EdgePrice pool_prices[] = {
    {"call", 12000, "call"},
    {"near", 0.2, "input element in the core's own cache"},
    {"far", 0.2, "input element beyond it"},
    {"output", 0.5, "output element"},
    {"tap", 0.1, "tap of a window"},
};

void pool_amounts(const EdgeKernel& kernel, const EdgeCore& core, std::span<double> out) {
  const auto& t = std::get<TensorSizes>(kernel.sizes);
  const double elements = as_double(t.elements), outputs = as_double(t.outputs);
  const CacheSplit split = cache_split(elements, elements * bytes_per_element(DType::fp32), core);
  out[0] = 1;
  out[1] = split.near;
  out[2] = split.far;
  out[3] = outputs;
  out[4] = outputs * as_double(t.window) * as_double(t.window);
}

constexpr EdgePrice transpose_prices[] = {
    {"call", 12000, "call"},
    {"near", 0.5, "element in the core's own cache"},
    {"far", 0.5, "element beyond it"},
    {"swapped_near", 0.5, "element in the core's own cache, where the last two axes swap"},
    {"swapped_far", 0.5, "element beyond it, where the last two axes swap"},
};

void transpose_amounts(const EdgeKernel& kernel, const EdgeCore& core, std::span<double> out) {
  const bool swapped = std::get<TensorSizes>(kernel.sizes).swaps_last_axes;
  element_amounts(kernel, core, out);
  out[3] = swapped ? out[1] : 0;
  out[4] = swapped ? out[2] : 0;
  if (swapped) out[1] = out[2] = 0;
}

constexpr EdgePrice traffic_prices[] = {
    {"call", 12000, "call"},
    {"near", 0.1, "byte moved in the core's own cache"},
    {"far", 0.1, "byte moved beyond it"},
};

void traffic_amounts(const EdgeKernel& kernel, const EdgeCore& core, std::span<double> out) {
  const double bytes = edge_work(kernel).bytes().value();
  const CacheSplit split = cache_split(bytes, bytes, core);
  out[0] = 1;
  out[1] = split.near;
  out[2] = split.far;
}

constexpr EdgePrice call_prices[] = {{"call", 12000, "call"}};

void call_amounts(const EdgeKernel& /*kernel*/, const EdgeCore& /*core*/, std::span<double> out) {
  out[0] = 1;
}

constexpr EdgeLaw convolution_law{"convolution", convolution_prices, convolution_amounts};
constexpr EdgeLaw depthwise_law{"depthwise", depthwise_prices, depthwise_amounts};
constexpr EdgeLaw int8_convolution_law{"int8_convolution", int8_convolution_prices, int8_convolution_amounts};
constexpr EdgeLaw int8_depthwise_law{"int8_depthwise", int8_depthwise_prices, int8_depthwise_amounts};
constexpr EdgeLaw product_law{"product", product_prices, product_amounts};
constexpr EdgeLaw element_law{"elements", element_prices, element_amounts};
constexpr EdgeLaw row_law{"rows", row_prices, row_amounts};
constexpr EdgeLaw pool_law{"pool", pool_prices, pool_amounts};
constexpr EdgeLaw transpose_law{"transpose", transpose_prices, transpose_amounts};
constexpr EdgeLaw traffic_law{"traffic", traffic_prices, traffic_amounts};
constexpr EdgeLaw call_law{"call", call_prices, call_amounts};

}  // namespace

CacheSplit cache_split(double elements, double touched_bytes, const EdgeCore& core) {
  const double far_share = touched_bytes / (touched_bytes + core.cache_bytes);
  return {.near = elements * (1 - far_share), .far = elements * far_share};
}

double memory_share(double touched_bytes, const EdgeCore& core) {
  const double squared = touched_bytes * touched_bytes;
  return squared / (squared + core.last_level_bytes * core.last_level_bytes);
}

const EdgeLaw& edge_law(EdgeKernelKind kind) {
  switch (kind) {
    case EdgeKernelKind::convolution:
      return convolution_law;
    case EdgeKernelKind::int8_convolution:
      return int8_convolution_law;
    case EdgeKernelKind::depthwise:
      return depthwise_law;
    case EdgeKernelKind::int8_depthwise:
      return int8_depthwise_law;
    case EdgeKernelKind::linear:
    case EdgeKernelKind::gemv:
    case EdgeKernelKind::batched_matmul:
    case EdgeKernelKind::int8_linear:
    case EdgeKernelKind::int8_gemv:
    case EdgeKernelKind::int4_linear:
    case EdgeKernelKind::int4_gemv:
      return product_law;
    case EdgeKernelKind::scaled_softmax:
    case EdgeKernelKind::softmax:
    case EdgeKernelKind::layer_norm:
    case EdgeKernelKind::fused_layer_norm:
      return row_law;
    case EdgeKernelKind::max_pool:
      return pool_law;
    case EdgeKernelKind::transpose:
      return transpose_law;
    case EdgeKernelKind::empty:
      return call_law;
    case EdgeKernelKind::add:
    case EdgeKernelKind::int8_add:
    case EdgeKernelKind::quantize:
    case EdgeKernelKind::add_relu:
    case EdgeKernelKind::channel_scale:
    case EdgeKernelKind::concat:
    case EdgeKernelKind::global_pool:
    case EdgeKernelKind::sigmoid:
    case EdgeKernelKind::gelu:
    case EdgeKernelKind::fused_gelu:
      return element_law;
    case EdgeKernelKind::traffic:
      return traffic_law;
  }
  throw InternalError("every kind of edge kernel has a law");
}

double priced_seconds(std::span<const double> amounts, std::span<const double> prices_ns) {
  double nanoseconds = 0;
  for (size_t i = 0; i < amounts.size(); ++i) nanoseconds += amounts[i] * prices_ns[i];
  return nanoseconds * 1e-9;
}

}  // namespace foretoken
