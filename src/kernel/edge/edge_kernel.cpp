#include "kernel/edge/edge_kernel.h"

#include <algorithm>
#include <span>

#include <fmt/format.h>

#include "base/error.h"
#include "base/kinds.h"
#include "base/range.h"
#include "base/text.h"

namespace foretoken {
namespace {

enum class SizesKind { none, convolution, product, tensor };

struct KindFacts {
  EdgeKernelKind kind;
  std::string_view name;
  SizesKind sizes;
  int operators;
};

constexpr KindFacts kinds[] = {
    {EdgeKernelKind::convolution, "conv", SizesKind::convolution, 1},
    {EdgeKernelKind::depthwise, "dwconv", SizesKind::convolution, 1},
    {EdgeKernelKind::linear, "linear", SizesKind::product, 2},
    {EdgeKernelKind::gemv, "gemm1", SizesKind::product, 1},
    {EdgeKernelKind::batched_matmul, "bmm", SizesKind::product, 1},
    {EdgeKernelKind::int8_convolution, "qconv", SizesKind::convolution, 1},
    {EdgeKernelKind::int8_depthwise, "qdwconv", SizesKind::convolution, 1},
    {EdgeKernelKind::int8_linear, "qlinear", SizesKind::product, 1},
    {EdgeKernelKind::int8_gemv, "qgemm1", SizesKind::product, 1},
    {EdgeKernelKind::int4_linear, "q4linear", SizesKind::product, 1},
    {EdgeKernelKind::int4_gemv, "q4gemm1", SizesKind::product, 1},
    {EdgeKernelKind::int8_add, "qadd", SizesKind::tensor, 1},
    {EdgeKernelKind::quantize, "quantize", SizesKind::tensor, 1},
    {EdgeKernelKind::add, "add", SizesKind::tensor, 1},
    {EdgeKernelKind::add_relu, "addrelu", SizesKind::tensor, 2},
    {EdgeKernelKind::channel_scale, "semul", SizesKind::tensor, 1},
    {EdgeKernelKind::concat, "concat", SizesKind::tensor, 1},
    {EdgeKernelKind::global_pool, "gap", SizesKind::tensor, 1},
    {EdgeKernelKind::sigmoid, "sigmoid", SizesKind::tensor, 1},
    {EdgeKernelKind::max_pool, "maxpool", SizesKind::tensor, 1},
    {EdgeKernelKind::scaled_softmax, "scalesoftmax", SizesKind::tensor, 2},
    {EdgeKernelKind::softmax, "softmax", SizesKind::tensor, 1},
    {EdgeKernelKind::layer_norm, "layernorm", SizesKind::tensor, 9},
    {EdgeKernelKind::fused_layer_norm, "fusedlayernorm", SizesKind::tensor, 1},
    {EdgeKernelKind::gelu, "gelu", SizesKind::tensor, 5},
    {EdgeKernelKind::fused_gelu, "fusedgelu", SizesKind::tensor, 1},
    {EdgeKernelKind::transpose, "transpose", SizesKind::tensor, 1},
    {EdgeKernelKind::traffic, "traffic", SizesKind::tensor, 1},
    {EdgeKernelKind::empty, "null", SizesKind::none, 0},
};

const KindFacts& facts_of(EdgeKernelKind kind) {
  for (const KindFacts& facts : kinds) {
    if (facts.kind == kind) return facts;
  }
  throw InternalError("every kind of edge kernel is in the list");
}

bool is_depthwise(EdgeKernelKind kind) {
  return kind == EdgeKernelKind::depthwise || kind == EdgeKernelKind::int8_depthwise;
}

constexpr std::string_view activation_names[] = {"none", "relu", "clip", "swish"};
constexpr std::string_view no_yes[] = {"0", "1"};

bool has_rows(EdgeKernelKind kind) {
  return kind == EdgeKernelKind::scaled_softmax || kind == EdgeKernelKind::softmax ||
         kind == EdgeKernelKind::layer_norm || kind == EdgeKernelKind::fused_layer_norm;
}

// The key=value pairs of one kernel, each asked for once.
class ParameterText {
 public:
  ParameterText(std::string_view text, std::string source, int line) : source_(std::move(source)), line_(line) {
    for (const std::string_view pair : split_words(text, ";")) {
      const size_t equals = pair.find('=');
      if (equals == std::string_view::npos) fail(pair, "key=value pairs separated by ;");
      pairs_.push_back({.key = pair.substr(0, equals), .value = pair.substr(equals + 1)});
    }
  }

  std::optional<std::string_view> find(std::string_view key) {
    for (Pair& pair : pairs_) {
      if (pair.key != key) continue;
      if (pair.used) fail(key, "each key once");
      pair.used = true;
      return pair.value;
    }
    return std::nullopt;
  }

  int64_t size(std::string_view key, std::optional<int64_t> fallback = {}) {
    const auto text = find(key);
    if (!text) {
      if (fallback) return *fallback;
      fail(key, fmt::format("a value for {}", key));
    }
    constexpr Range<int64_t> allowed{.least = 1, .most = int64_t{1} << 40};
    const auto value = parse_integer(*text);
    if (!value || !allowed.holds(*value)) fail(fmt::format("{}={}", key, *text), range_text(allowed));
    return *value;
  }

  size_t choice(std::string_view key, std::span<const std::string_view> names) {
    const auto text = find(key);
    if (!text) return 0;
    const auto* found = std::find(names.data(), names.data() + names.size(), *text);
    if (found == names.data() + names.size()) {
      fail(fmt::format("{}={}", key, *text), fmt::format("one of {}", fmt::join(names, ", ")));
    }
    return static_cast<size_t>(found - names.data());
  }

  void expect_all_used() const {
    for (const Pair& pair : pairs_) {
      if (!pair.used) fail(pair.key, "only keys that this kind of kernel has, each once");
    }
  }

 private:
  struct Pair {
    std::string_view key, value;
    bool used = false;
  };

  [[noreturn]] void fail(std::string_view value, std::string expected) const {
    throw InputError({.source = source_,
                      .line = line_,
                      .path = "params",
                      .value = printable(value),
                      .expected = std::move(expected)});
  }

  std::string source_;
  int line_;
  std::vector<Pair> pairs_;
};

ConvolutionSizes parse_convolution(ParameterText& text, bool depthwise) {
  ConvolutionSizes sizes;
  sizes.in_channels = text.size("ic");
  sizes.out_channels = text.size("oc");
  sizes.in_height = text.size("h");
  sizes.in_width = text.size("w", sizes.in_height);
  sizes.out_height = text.size("oh");
  sizes.out_width = text.size("ow", sizes.out_height);
  sizes.kernel_height = text.size("k");
  sizes.kernel_width = text.size("kw", sizes.kernel_height);
  sizes.stride = text.size("s");
  sizes.groups = text.size("g", depthwise ? sizes.in_channels : 1);
  sizes.batch = text.size("b", 1);
  sizes.activation = static_cast<EdgeActivation>(text.choice("act", activation_names));
  sizes.accumulates = text.choice("sum", no_yes) == 1;
  return sizes;
}

TensorSizes parse_tensor(ParameterText& text, EdgeKernelKind kind) {
  TensorSizes sizes{.elements = text.size("n")};
  sizes.outputs = sizes.elements;
  if (has_rows(kind)) sizes.rows = text.size("r");
  switch (kind) {
    case EdgeKernelKind::max_pool:
      sizes.outputs = text.size("o");
      sizes.window = text.size("k");
      break;
    case EdgeKernelKind::traffic:
      sizes.outputs = text.size("o");
      break;
    case EdgeKernelKind::transpose:
      sizes.swaps_last_axes = text.choice("t", no_yes) == 1;
      break;
    default:
      break;
  }
  return sizes;
}

std::string convolution_text(const ConvolutionSizes& c, bool depthwise) {
  std::string text =
      fmt::format("ic={};oc={};h={};oh={};k={};s={};act={}", c.in_channels, c.out_channels, c.in_height, c.out_height,
                  c.kernel_height, c.stride, activation_names[static_cast<size_t>(c.activation)]);
  const auto add = [&](const char* key, int64_t value, int64_t usual) {
    if (value != usual) text += fmt::format(";{}={}", key, value);
  };
  add("w", c.in_width, c.in_height);
  add("ow", c.out_width, c.out_height);
  add("kw", c.kernel_width, c.kernel_height);
  add("g", c.groups, depthwise ? c.in_channels : 1);
  add("b", c.batch, 1);
  add("sum", c.accumulates ? 1 : 0, 0);
  return text;
}

std::string tensor_text(const TensorSizes& sizes, EdgeKernelKind kind) {
  std::string text = fmt::format("n={}", sizes.elements);
  if (has_rows(kind)) text += fmt::format(";r={}", sizes.rows);
  switch (kind) {
    case EdgeKernelKind::max_pool:
      return text + fmt::format(";o={};k={}", sizes.outputs, sizes.window);
    case EdgeKernelKind::traffic:
      return text + fmt::format(";o={}", sizes.outputs);
    case EdgeKernelKind::transpose:
      return text + fmt::format(";t={}", sizes.swaps_last_axes ? 1 : 0);
    default:
      return text;
  }
}

double product_of(std::initializer_list<int64_t> factors) {
  double product = 1;
  for (const int64_t factor : factors) product *= static_cast<double>(factor);
  return product;
}

Work work_of(double flops, double weights, double read, double written, DType type = DType::fp32) {
  const double element = bytes_per_element(type);
  return {.flops = Flops(flops),
          .math = type,
          .weights_read = Bytes(element * weights),
          .activations_read = Bytes(element * read),
          .written = Bytes(element * written)};
}

double activation_flops(EdgeActivation activation) {
  switch (activation) {
    case EdgeActivation::none:
      return 0;
    case EdgeActivation::relu:
      return 1;
    case EdgeActivation::clip:
      return 2;
    case EdgeActivation::swish:
      return 4;  // negate, exponential, add, divide: as SoftmaxShape counts them
  }
  return 0;
}

Work convolution_work(const ConvolutionSizes& c, DType type) {
  const double outputs = product_of({c.batch, c.out_channels, c.out_height, c.out_width});
  const double weights =
      product_of({c.out_channels, c.in_channels, c.kernel_height, c.kernel_width}) / static_cast<double>(c.groups);
  const double window = product_of({c.in_channels, c.kernel_height, c.kernel_width}) / static_cast<double>(c.groups);
  const double added = c.accumulates ? outputs : 0;
  return work_of(outputs * (2 * window + activation_flops(c.activation)) + added, weights,
                 product_of({c.batch, c.in_channels, c.in_height, c.in_width}) + added, outputs, type);
}

Work product_work(const ProductSizes& p, bool constant_right, DType type) {
  const double right = product_of({constant_right ? 1 : p.batch, p.k, p.n});
  return work_of(2 * product_of({p.batch, p.m, p.n, p.k}), constant_right ? right : 0,
                 product_of({p.batch, p.m, p.k}) + (constant_right ? 0 : right), product_of({p.batch, p.m, p.n}), type);
}

// FLOPs of an element, and tensors of `elements` read and written where they are not `outputs`.
Work tensor_work(const TensorSizes& t, EdgeKernelKind kind) {
  const double n = static_cast<double>(t.elements), outputs = static_cast<double>(t.outputs);
  switch (kind) {
    case EdgeKernelKind::add:
      return work_of(n, 0, 2 * n, n);
    case EdgeKernelKind::int8_add:
      return work_of(n, 0, 2 * n, n, DType::int8);
    case EdgeKernelKind::quantize: {
      Work work = work_of(4 * n, 0, n, 0);  // least, most, scale, round
      work.written = Bytes(n);
      return work;
    }
    case EdgeKernelKind::add_relu:
      return work_of(2 * n, 0, 2 * n, n);
    case EdgeKernelKind::channel_scale:
      return work_of(n, 0, n, n);
    case EdgeKernelKind::global_pool:
      return work_of(n, 0, n, 0);
    case EdgeKernelKind::sigmoid:
      return work_of(4 * n, 0, n, n);
    case EdgeKernelKind::max_pool:
      return work_of(outputs * product_of({t.window, t.window}), 0, n, outputs);
    case EdgeKernelKind::scaled_softmax:
      return work_of(6 * n, 0, n, n);
    case EdgeKernelKind::softmax:
      return work_of(5 * n, 0, n, n);
    case EdgeKernelKind::layer_norm:
    case EdgeKernelKind::fused_layer_norm:
      return work_of(8 * n, 0, n, n);
    case EdgeKernelKind::gelu:
    case EdgeKernelKind::fused_gelu:
      return work_of(8 * n, 0, n, n);
    case EdgeKernelKind::traffic:
      return work_of(outputs, 0, n, outputs);
    default:
      return work_of(0, 0, n, n);
  }
}

}  // namespace

EdgeKernel edge_convolution(const ConvolutionSizes& sizes) {
  const bool depthwise = sizes.groups > 1 && sizes.groups == sizes.in_channels && sizes.groups == sizes.out_channels;
  return {.kind = depthwise ? EdgeKernelKind::depthwise : EdgeKernelKind::convolution, .sizes = sizes};
}

EdgeKernel edge_product(EdgeKernelKind kind, const ProductSizes& sizes) {
  ensure(facts_of(kind).sizes == SizesKind::product, "this kind of kernel multiplies two matrices");
  return {.kind = kind, .sizes = sizes};
}

EdgeKernel edge_tensor(EdgeKernelKind kind, const TensorSizes& sizes) {
  ensure(facts_of(kind).sizes == SizesKind::tensor, "this kind of kernel works on the elements of a tensor");
  return {.kind = kind, .sizes = sizes};
}

std::optional<EdgeKernel> edge_in_int8(const EdgeKernel& kernel) {
  constexpr std::pair<EdgeKernelKind, EdgeKernelKind> pairs[] = {
      {EdgeKernelKind::convolution, EdgeKernelKind::int8_convolution},
      {EdgeKernelKind::depthwise, EdgeKernelKind::int8_depthwise},
      {EdgeKernelKind::linear, EdgeKernelKind::int8_linear},
      {EdgeKernelKind::gemv, EdgeKernelKind::int8_gemv}};
  for (const auto& [fp32, int8] : pairs) {
    if (kernel.kind == fp32) return EdgeKernel{.kind = int8, .sizes = kernel.sizes};
  }
  return std::nullopt;
}

std::optional<EdgeKernel> edge_in_int4(const EdgeKernel& kernel) {
  if (kernel.kind == EdgeKernelKind::linear)
    return EdgeKernel{.kind = EdgeKernelKind::int4_linear, .sizes = kernel.sizes};
  if (kernel.kind == EdgeKernelKind::gemv) return EdgeKernel{.kind = EdgeKernelKind::int4_gemv, .sizes = kernel.sizes};
  return std::nullopt;
}

bool is_int4(EdgeKernelKind kind) {
  return kind == EdgeKernelKind::int4_linear || kind == EdgeKernelKind::int4_gemv;
}

bool is_int8(EdgeKernelKind kind) {
  return kind == EdgeKernelKind::int8_convolution || kind == EdgeKernelKind::int8_depthwise ||
         kind == EdgeKernelKind::int8_linear || kind == EdgeKernelKind::int8_gemv;
}

bool multiplies(EdgeKernelKind kind) {
  return is_int8(kind) || is_int4(kind) || kind == EdgeKernelKind::convolution || kind == EdgeKernelKind::depthwise ||
         kind == EdgeKernelKind::linear || kind == EdgeKernelKind::gemv || kind == EdgeKernelKind::batched_matmul;
}

std::string_view edge_kind_name(EdgeKernelKind kind) {
  return facts_of(kind).name;
}

std::optional<EdgeKernelKind> edge_kind_from_name(std::string_view name) {
  const KindFacts* const facts = find_kind(kinds, name);
  return facts == nullptr ? std::nullopt : std::optional(facts->kind);
}

std::vector<std::string> edge_kind_names() {
  return kind_names(kinds);
}

int edge_operator_count(EdgeKernelKind kind) {
  return facts_of(kind).operators;
}

EdgeKernel parse_edge_kernel(std::string_view kind, std::string_view parameters, const std::string& source, int line) {
  const std::optional<EdgeKernelKind> known = edge_kind_from_name(kind);
  if (!known) fail_unknown_name(kind, edge_kind_names(), {.source = source, .line = line, .path = "kind"});
  ParameterText text(parameters, source, line);
  EdgeKernel kernel{.kind = *known};
  switch (facts_of(*known).sizes) {
    case SizesKind::none:
      break;
    case SizesKind::convolution:
      kernel.sizes = parse_convolution(text, is_depthwise(*known));
      break;
    case SizesKind::product:
      kernel.sizes =
          ProductSizes{.batch = text.size("b", 1), .m = text.size("m"), .k = text.size("k"), .n = text.size("n")};
      break;
    case SizesKind::tensor:
      kernel.sizes = parse_tensor(text, *known);
      break;
  }
  text.expect_all_used();
  return kernel;
}

std::string edge_parameters(const EdgeKernel& kernel) {
  if (const auto* sizes = std::get_if<ConvolutionSizes>(&kernel.sizes))
    return convolution_text(*sizes, is_depthwise(kernel.kind));
  if (const auto* sizes = std::get_if<ProductSizes>(&kernel.sizes)) {
    const std::string batch = kernel.kind == EdgeKernelKind::batched_matmul || sizes->batch != 1
                                  ? fmt::format("b={};", sizes->batch)
                                  : std::string();
    return fmt::format("{}m={};k={};n={}", batch, sizes->m, sizes->k, sizes->n);
  }
  if (const auto* sizes = std::get_if<TensorSizes>(&kernel.sizes)) return tensor_text(*sizes, kernel.kind);
  return "";
}

Work edge_work(const EdgeKernel& kernel) {
  const DType type = is_int8(kernel.kind) ? DType::int8 : DType::fp32;
  if (const auto* sizes = std::get_if<ConvolutionSizes>(&kernel.sizes)) return convolution_work(*sizes, type);
  if (const auto* sizes = std::get_if<ProductSizes>(&kernel.sizes)) {
    Work work = product_work(*sizes, kernel.kind != EdgeKernelKind::batched_matmul, type);
    // A scale in fp32 for each block of 32 weights.
    constexpr double int4_weight_bytes = 0.5 + 4.0 / 32;
    if (is_int4(kernel.kind))
      work.weights_read = work.weights_read * (int4_weight_bytes / bytes_per_element(DType::fp32));
    return work;
  }
  if (const auto* sizes = std::get_if<TensorSizes>(&kernel.sizes)) return tensor_work(*sizes, kernel.kind);
  return work_of(0, 0, 0, 0);
}

}  // namespace foretoken
