#include "app/cli/profile/xnnpack_calls.h"

#include "base/error.h"

#if FORETOKEN_XNNPACK
#include <cmath>
#include <limits>
#include <map>
#include <memory>

#include <pthreadpool.h>
#include <xnnpack.h>
#endif

namespace foretoken {

#if FORETOKEN_XNNPACK

namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();
constexpr size_t tensor_channels = 64;  // as the plan of a sweep shapes its tensors

void expect_success(xnn_status status) {
  ensure(status == xnn_status_success, "XNNPACK takes the kernels of the sweep");
}

// An operator and what it reads and writes.
struct XnnpackKernel {
  xnn_operator_t op = nullptr;
  pthreadpool_t pool = nullptr;  // null = the caller's thread
  std::vector<float> weights, bias, input, output;
  std::vector<int8_t> int8_weights, int8_input, int8_output;
  std::vector<int32_t> int8_bias;
  int64_t runs = 1;

  XnnpackKernel() = default;
  XnnpackKernel(const XnnpackKernel&) = delete;
  XnnpackKernel& operator=(const XnnpackKernel&) = delete;
  ~XnnpackKernel() { xnn_delete_operator(op); }

  void run() const {
    for (int64_t i = 0; i < runs; ++i) expect_success(xnn_run_operator(op, pool));
  }

  // XNNPACK may read a few elements past the end.
  void allocate(size_t weight_count, size_t bias_count, size_t inputs, size_t outputs) {
    constexpr size_t spare = XNN_EXTRA_BYTES / sizeof(float) + 1;
    weights.assign(weight_count + spare, 0.5F);
    bias.assign(bias_count + spare, 0.25F);
    input.assign(inputs + spare, 0.75F);
    output.assign(outputs + spare, 0.0F);
  }
  void allocate_int8(size_t weight_count, size_t bias_count, size_t inputs, size_t outputs) {
    int8_weights.assign(weight_count + XNN_EXTRA_BYTES, 3);
    int8_bias.assign(bias_count + XNN_EXTRA_BYTES, 5);
    int8_input.assign(inputs + XNN_EXTRA_BYTES, 7);
    int8_output.assign(outputs + XNN_EXTRA_BYTES, 0);
  }
};

size_t as_size(int64_t value) {
  return static_cast<size_t>(value);
}

// The padding before and after that gives `out` positions, the larger half after.
struct Padding {
  uint32_t before = 0, after = 0;
};

Padding padding_for(int64_t in, int64_t out, int64_t window, int64_t stride) {
  const int64_t total = std::max<int64_t>(0, (out - 1) * stride + window - in);
  return {.before = static_cast<uint32_t>(total / 2), .after = static_cast<uint32_t>(total - total / 2)};
}

// Any scales whose product is below that of the output: times do not depend on them.
constexpr float int8_scale = 0.5F, int8_output_scale = 1.0F;

void set_up(XnnpackKernel& kernel, const ConvolutionSizes& c, bool int8) {
  const size_t group_in = as_size(c.in_channels / c.groups), group_out = as_size(c.out_channels / c.groups);
  const size_t weights = as_size(c.out_channels) * group_in * as_size(c.kernel_height * c.kernel_width);
  const size_t inputs = as_size(c.batch * c.in_channels * c.in_height * c.in_width);
  const size_t outputs = as_size(c.batch * c.out_channels * c.out_height * c.out_width);
  const Padding rows = padding_for(c.in_height, c.out_height, c.kernel_height, c.stride);
  const Padding columns = padding_for(c.in_width, c.out_width, c.kernel_width, c.stride);
  const float least = c.activation == EdgeActivation::none ? -infinity : 0.0F;
  const float most = c.activation == EdgeActivation::clip ? 6.0F : infinity;
  const auto stride = static_cast<uint32_t>(c.stride);
  const bool depthwise = group_in == 1 && group_out == 1 && c.groups > 1;
  if (int8) {
    kernel.allocate_int8(weights, as_size(c.out_channels), inputs, outputs);
    const auto lowest = static_cast<int8_t>(c.activation == EdgeActivation::none ? -128 : 0);
    const auto highest = static_cast<int8_t>(c.activation == EdgeActivation::clip ? 96 : 127);
    expect_success(xnn_create_convolution2d_nhwc_qs8(
        rows.before, columns.after, rows.after, columns.before, static_cast<uint32_t>(c.kernel_height),
        static_cast<uint32_t>(c.kernel_width), stride, stride, 1, 1, static_cast<uint32_t>(c.groups), group_in,
        group_out, as_size(c.in_channels), as_size(c.out_channels), 0, int8_scale, int8_scale,
        kernel.int8_weights.data(), kernel.int8_bias.data(), 0, int8_output_scale, lowest, highest,
        depthwise ? XNN_FLAG_DEPTHWISE_CONVOLUTION : 0, &kernel.op));
    expect_success(xnn_setup_convolution2d_nhwc_qs8(kernel.op, as_size(c.batch), as_size(c.in_height),
                                                    as_size(c.in_width), kernel.int8_input.data(),
                                                    kernel.int8_output.data(), kernel.pool));
    return;
  }
  kernel.allocate(weights, as_size(c.out_channels), inputs, outputs);
  expect_success(xnn_create_convolution2d_nhwc_f32(
      rows.before, columns.after, rows.after, columns.before, static_cast<uint32_t>(c.kernel_height),
      static_cast<uint32_t>(c.kernel_width), stride, stride, 1, 1, static_cast<uint32_t>(c.groups), group_in, group_out,
      as_size(c.in_channels), as_size(c.out_channels), kernel.weights.data(), kernel.bias.data(), least, most,
      depthwise ? XNN_FLAG_DEPTHWISE_CONVOLUTION : 0, &kernel.op));
  expect_success(xnn_setup_convolution2d_nhwc_f32(kernel.op, as_size(c.batch), as_size(c.in_height),
                                                  as_size(c.in_width), kernel.input.data(), kernel.output.data(),
                                                  kernel.pool));
}

void set_up(XnnpackKernel& kernel, const ProductSizes& p, bool int8) {
  const size_t m = as_size(p.m), k = as_size(p.k), n = as_size(p.n);
  kernel.runs = p.batch;
  if (int8) {
    kernel.allocate_int8(k * n, n, m * k, m * n);
    expect_success(xnn_create_fully_connected_nc_qs8(k, n, k, n, 0, int8_scale, int8_scale, kernel.int8_weights.data(),
                                                     kernel.int8_bias.data(), 0, int8_output_scale, -128, 127, 0,
                                                     &kernel.op));
    expect_success(xnn_setup_fully_connected_nc_qs8(kernel.op, m, kernel.int8_input.data(), kernel.int8_output.data(),
                                                    kernel.pool));
    return;
  }
  kernel.allocate(k * n, n, m * k, m * n);
  expect_success(xnn_create_fully_connected_nc_f32(k, n, k, n, kernel.weights.data(), kernel.bias.data(), -infinity,
                                                   infinity, 0, &kernel.op));
  expect_success(
      xnn_setup_fully_connected_nc_f32(kernel.op, m, kernel.input.data(), kernel.output.data(), kernel.pool));
}

void set_up_addition(XnnpackKernel& kernel, size_t elements, float least) {
  kernel.allocate(elements, 0, elements, elements);
  expect_success(xnn_create_add_nd_f32(least, infinity, 0, &kernel.op));
  expect_success(xnn_setup_add_nd_f32(kernel.op, 1, &elements, 1, &elements, kernel.input.data(), kernel.weights.data(),
                                      kernel.output.data(), kernel.pool));
}

void set_up_pool(XnnpackKernel& kernel, size_t elements, size_t window) {
  const auto side = static_cast<size_t>(std::lround(std::sqrt(static_cast<double>(elements / tensor_channels))));
  const auto size = static_cast<uint32_t>(window);
  expect_success(xnn_create_max_pooling2d_nhwc_f32(0, 0, 0, 0, size, size, 2, 2, 1, 1, tensor_channels, tensor_channels,
                                                   tensor_channels, -infinity, infinity, 0, &kernel.op));
  expect_success(xnn_setup_max_pooling2d_nhwc_f32(kernel.op, 1, side, side, kernel.input.data(), kernel.output.data(),
                                                  kernel.pool));
}

void set_up_scale(XnnpackKernel& kernel, size_t elements) {
  const size_t shape[] = {elements / tensor_channels, tensor_channels}, channels = tensor_channels;
  expect_success(xnn_create_multiply_nd_f32(-infinity, infinity, 0, &kernel.op));
  expect_success(xnn_setup_multiply_nd_f32(kernel.op, 2, shape, 1, &channels, kernel.input.data(),
                                           kernel.weights.data(), kernel.output.data(), kernel.pool));
}

// False for a kind that XNNPACK has no operator for.
bool set_up(XnnpackKernel& kernel, EdgeKernelKind kind, const TensorSizes& t) {
  const size_t elements = as_size(t.elements), rows = as_size(t.rows), row = elements / rows;
  if (kind == EdgeKernelKind::add || kind == EdgeKernelKind::add_relu) {
    set_up_addition(kernel, elements, kind == EdgeKernelKind::add ? -infinity : 0.0F);
    return true;
  }
  kernel.allocate(tensor_channels, 0, elements, elements);
  float* const in = kernel.input.data();
  float* const out = kernel.output.data();
  switch (kind) {
    case EdgeKernelKind::channel_scale:
      set_up_scale(kernel, elements);
      return true;
    case EdgeKernelKind::max_pool:
      set_up_pool(kernel, elements, as_size(t.window));
      return true;
    case EdgeKernelKind::concat:
      expect_success(xnn_create_copy_nc_x32(elements, elements, elements, 0, &kernel.op));
      expect_success(xnn_setup_copy_nc_x32(kernel.op, 1, in, out, kernel.pool));
      return true;
    case EdgeKernelKind::global_pool:
      expect_success(xnn_create_global_average_pooling_nwc_f32(tensor_channels, tensor_channels, tensor_channels,
                                                               -infinity, infinity, 0, &kernel.op));
      expect_success(
          xnn_setup_global_average_pooling_nwc_f32(kernel.op, 1, elements / tensor_channels, in, out, kernel.pool));
      return true;
    case EdgeKernelKind::sigmoid:
      expect_success(xnn_create_sigmoid_nc_f32(elements, elements, elements, 0, &kernel.op));
      expect_success(xnn_setup_sigmoid_nc_f32(kernel.op, 1, in, out, kernel.pool));
      return true;
    case EdgeKernelKind::scaled_softmax:
      expect_success(xnn_create_softmax_nc_f32(row, row, row, 0, &kernel.op));
      expect_success(xnn_setup_softmax_nc_f32(kernel.op, rows, in, out, kernel.pool));
      return true;
    default:
      return false;
  }
}

// Kept until the program ends: starting threads takes longer than a kernel.
pthreadpool_t pool_of(int threads) {
  if (threads == 1) return nullptr;
  struct PoolDeleter {
    void operator()(pthreadpool_t pool) const { pthreadpool_destroy(pool); }
  };
  static std::map<int, std::unique_ptr<pthreadpool, PoolDeleter>> pools;
  auto& own = pools[threads];
  if (!own) own.reset(pthreadpool_create(static_cast<size_t>(threads)));
  return own.get();
}

}  // namespace

bool has_xnnpack() {
  return true;
}

CpuCall xnnpack_call(const EdgeKernel& kernel, int threads) {
  expect_success(xnn_initialize(nullptr));
  // A std::function must be copyable, so that its operator is shared.
  const auto own = std::make_shared<XnnpackKernel>();
  own->pool = pool_of(threads);
  if (const auto* convolution = std::get_if<ConvolutionSizes>(&kernel.sizes)) {
    if (convolution->activation == EdgeActivation::swish) return {};
    set_up(*own, *convolution, is_int8(kernel.kind));
  } else if (const auto* product = std::get_if<ProductSizes>(&kernel.sizes)) {
    if (is_int4(kernel.kind)) return {};
    set_up(*own, *product, is_int8(kernel.kind));
  } else if (const auto* tensor = std::get_if<TensorSizes>(&kernel.sizes)) {
    if (!set_up(*own, kernel.kind, *tensor)) return {};
  } else {
    set_up_addition(*own, 1, -infinity);
  }
  return [own] { own->run(); };
}

#else

bool has_xnnpack() {
  return false;
}

CpuCall xnnpack_call(const EdgeKernel& /*kernel*/, int /*threads*/) {
  throw InputError({.source = "foretoken profile cpu",
                    .value = "this program was built without XNNPACK",
                    .expected = "a build with the Debian packages libxnnpack-dev and libpthreadpool-dev; or a sweep "
                                "with ONNX Runtime: tools/measure_ort.py, then `foretoken fit edge-kernels`"});
}

#endif

}  // namespace foretoken
