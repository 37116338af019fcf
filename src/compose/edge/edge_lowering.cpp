#include "compose/edge/edge_lowering.h"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

#include "base/counted.h"
#include "base/error.h"
#include "compose/edge/quantized_operators.h"
#include "compose/edge/transposes.h"
#include "model/onnx/node_view.h"
#include "model/onnx/work.h"

namespace foretoken {
namespace {

using Kind = EdgeKernelKind;

template <size_t size>
bool is_listed(const std::string& name, const std::array<std::string_view, size>& names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// As many fp32 elements as take these bytes.
int64_t elements_of(Bytes bytes) {
  return std::max<int64_t>(1, std::llround(bytes.value() / bytes_per_element(DType::fp32)));
}

Flops flops_of(std::span<const Operator> operators) {
  Flops sum;
  for (const Operator& own : operators) sum += count_work(own.shape).flops * static_cast<double>(own.count);
  return sum;
}

EdgeKernel traffic_of(const Work& work) {
  return edge_tensor(Kind::traffic, {.elements = elements_of(work.weights_read + work.activations_read),
                                     .outputs = elements_of(work.written)});
}

EdgeKernel traffic_kernel(const OnnxGraph& graph, const OnnxNode& node) {
  return traffic_of(onnx_traffic(graph, node));
}

// A product whose right-hand side is a constant has it packed beforehand; a single row is a product with a vector.
EdgeKernel product_kernel(const GemmShape& shape, bool constant_right) {
  const ProductSizes sizes{.batch = shape.batch, .m = shape.m, .k = shape.k, .n = shape.n};
  if (!constant_right || shape.batch > 1) return edge_product(Kind::batched_matmul, sizes);
  return edge_product(shape.m == 1 ? Kind::gemv : Kind::linear, sizes);
}

EdgeKernel convolution_kernel(const ConvShape& shape) {
  const auto positions = [&](int64_t size, int64_t kernel) {
    return convolved_size(size, kernel, shape.stride, shape.padding, shape.dilation);
  };
  return edge_convolution({.batch = shape.batch,
                           .groups = shape.groups,
                           .in_channels = shape.in_channels,
                           .out_channels = shape.out_channels,
                           .in_height = shape.height,
                           .in_width = shape.width,
                           .out_height = positions(shape.height, shape.kernel_height),
                           .out_width = positions(shape.width, shape.kernel_width),
                           .kernel_height = shape.kernel_height,
                           .kernel_width = shape.kernel_width,
                           .stride = shape.stride});
}

bool multiplies(const EdgeKernel& kernel) {
  return std::holds_alternative<ConvolutionSizes>(kernel.sizes) || std::holds_alternative<ProductSizes>(kernel.sizes);
}

Scheme scheme_of(const KernelShape& shape) {
  if (const auto* conv = std::get_if<ConvShape>(&shape)) return conv->scheme;
  if (const auto* product = std::get_if<GemmShape>(&shape)) return product->scheme;
  return Scheme::fp32;
}

EdgeKernel softmax_kernel(const SoftmaxShape& softmax) {
  return edge_tensor(
      Kind::softmax,
      {.elements = softmax.rows * softmax.width, .rows = softmax.rows, .outputs = softmax.rows * softmax.width});
}

std::vector<EdgeKernel> norm_kernels(const NormShape& norm) {
  const TensorSizes sizes{.elements = norm.rows * norm.width, .rows = norm.rows, .outputs = norm.rows * norm.width};
  std::vector<EdgeKernel> kernels = {edge_tensor(Kind::fused_layer_norm, sizes)};
  if (norm.adds_residual) kernels.push_back(edge_tensor(Kind::add, sizes));
  return kernels;
}

// Scores, their softmax, and what they mix.
std::vector<EdgeKernel> attention_kernels(const AttentionShape& a) {
  const int64_t products = a.batch * a.heads, scores = products * a.q_len * a.kv_len;
  const int64_t value_dim = a.value_dim > 0 ? a.value_dim : a.head_dim;
  return {edge_product(Kind::batched_matmul, {.batch = products, .m = a.q_len, .k = a.head_dim, .n = a.kv_len}),
          edge_tensor(Kind::softmax, {.elements = scores, .rows = products * a.q_len, .outputs = scores}),
          edge_product(Kind::batched_matmul, {.batch = products, .m = a.q_len, .k = a.kv_len, .n = value_dim})};
}

// The calls of one node.
class NodeLowering {
 public:
  NodeLowering(const OnnxGraph& graph, const OnnxNode& node) : view_(graph, node) {}

  std::vector<EdgeCall> list(std::span<const Operator> operators) const {
    std::vector<EdgeCall> calls;
    for (const Operator& own : operators) {
      const bool is_stand_in = has_no_row(own.shape);
      // The gates of a recurrent layer are a step's part of the node, whose own bytes are those of all steps.
      const auto* part = operators.size() > 1 ? std::get_if<ElementwiseShape>(&own.shape) : nullptr;
      for (const EdgeKernel& kernel :
           part != nullptr ? std::vector{traffic_of(count_work(*part))} : kernels_of(own.shape)) {
        calls.push_back({.kernel = kernel,
                         .count = own.count,
                         .is_stand_in = is_stand_in,
                         .scheme = multiplies(kernel) ? scheme_of(own.shape) : Scheme::fp32,
                         .widens_weights = widens_weights()});
      }
    }
    return calls;
  }

 private:
  // Whether no sweep has such kernels: its pools take a maximum, its convolutions are of square windows without gaps,
  // over pictures, of one group or of one for each channel.
  bool has_no_row(const KernelShape& shape) const {
    const std::string& operation = view_.node().operation;
    if (std::holds_alternative<PoolShape>(shape)) return operation.find("MaxPool") == std::string::npos;
    const auto* conv = std::get_if<ConvShape>(&shape);
    if (conv == nullptr) return false;
    if (operation == "DeformConv" || operation.starts_with("ConvTranspose")) return true;
    constexpr size_t picture_rank = 4;
    const bool grouped = conv->groups > 1 && (conv->groups != conv->in_channels || conv->groups != conv->out_channels);
    const std::vector<int64_t> dilations = view_.list_attribute("dilations");
    const bool has_gaps = conv->kernel_height * conv->kernel_width > 1 &&
                          std::any_of(dilations.begin(), dilations.end(), [](int64_t own) { return own > 1; });
    return view_.rank(0) > picture_rank || grouped || has_gaps || conv->kernel_height != conv->kernel_width;
  }

  std::vector<EdgeKernel> kernels_of(const KernelShape& shape) const {
    if (const auto* conv = std::get_if<ConvShape>(&shape)) return {with_fused_parts(convolution_kernel(*conv))};
    if (const auto* product = std::get_if<GemmShape>(&shape)) return {product_kernel(*product, has_constant_right())};
    if (const auto* norm = std::get_if<NormShape>(&shape)) return norm_kernels(*norm);
    if (const auto* softmax = std::get_if<SoftmaxShape>(&shape)) return {softmax_kernel(*softmax)};
    if (const auto* pool = std::get_if<PoolShape>(&shape)) return {pool_kernel(*pool)};
    if (const auto* attention = std::get_if<AttentionShape>(&shape)) return attention_kernels(*attention);
    return {tensor_kernel()};
  }

  // What ONNX Runtime's FusedConv does beside the convolution: an activation, a residual as the fourth input.
  EdgeKernel with_fused_parts(EdgeKernel kernel) const {
    auto& sizes = std::get<ConvolutionSizes>(kernel.sizes);
    sizes.accumulates = view_.has(3) && view_.node().operation == "FusedConv";
    const std::string activation = view_.text_attribute("activation", "");
    if (activation == "Relu") sizes.activation = EdgeActivation::relu;
    if (activation == "Clip" || activation == "HardSigmoid" || activation == "LeakyRelu")
      sizes.activation = EdgeActivation::clip;
    if (activation == "Sigmoid" || activation == "Tanh") sizes.activation = EdgeActivation::swish;
    return kernel;
  }

  // Inputs of 8 bits are asked for by level 4; by default the product is one of fp32.
  bool widens_weights() const {
    constexpr int64_t int8_level = 4;
    return view_.node().operation == "MatMulNBits" && view_.attribute("accuracy_level", 0) != int8_level;
  }

  // Scales and zero points stand between the two sides of some quantized products.
  bool has_constant_right() const {
    const std::string& operation = view_.node().operation;
    const size_t right = operation == "QLinearMatMul" || operation == "QGemm" ? 3 : 1;
    return view_.has(right) && view_.input(right).is_constant;
  }

  static EdgeKernel pool_kernel(const PoolShape& pool) {
    const auto positions = [&](int64_t size) { return convolved_size(size, pool.kernel, pool.stride, 0, 1); };
    const int64_t maps = pool.batch * pool.channels;
    return edge_tensor(Kind::max_pool, {.elements = maps * pool.height * pool.width,
                                        .outputs = maps * positions(pool.height) * positions(pool.width),
                                        .window = pool.kernel});
  }

  // What works on the elements of tensors, by its operator.
  EdgeKernel tensor_kernel() const {
    const std::string& operation = view_.node().operation;
    const int64_t inputs = std::max<int64_t>(1, view_.input(0).elements());
    const int64_t outputs = std::max<int64_t>(1, output_elements());
    const TensorSizes same{.elements = outputs, .outputs = outputs};
    static constexpr std::array<std::string_view, 7> arithmetic = {"Add", "Sub", "Mul", "Div", "Max", "Min", "Pow"};
    // Operators that evaluate an exponential or the like for each element.
    static constexpr std::array<std::string_view, 11> transcendental = {
        "Sigmoid", "Tanh", "Erf", "Exp", "Log", "Softplus", "Elu", "Selu", "Mish", "QuickGelu", "Swish"};
    if (is_listed(operation, arithmetic)) return arithmetic_kernel(same);
    if (is_listed(operation, transcendental)) return edge_tensor(Kind::sigmoid, same);
    if (operation == "Gelu" || operation == "FastGelu" || operation == "BiasGelu")
      return edge_tensor(Kind::fused_gelu, same);
    if (operation == "BatchNormalization") return edge_tensor(Kind::channel_scale, same);
    if (operation == "Concat") return edge_tensor(Kind::concat, same);
    if (operation == "QLinearAdd") return edge_tensor(Kind::int8_add, same);
    if (operation == "DynamicQuantizeLinear") return edge_tensor(Kind::quantize, same);
    // A reduction passes over its input once, as a global pool does.
    if (operation == "GlobalAveragePool" || operation == "GlobalMaxPool" || operation.starts_with("Reduce"))
      return edge_tensor(Kind::global_pool, {.elements = inputs, .outputs = outputs});
    if (operation == "Transpose") {
      const TransposeOrder order = transpose_order(view_);
      if (!keeps_elements_in_order(order))
        return edge_tensor(Kind::transpose,
                           {.elements = outputs, .outputs = outputs, .swaps_last_axes = moves_last_axis(order)});
    }
    return traffic_kernel(view_.graph(), view_.node());
  }

  EdgeKernel arithmetic_kernel(const TensorSizes& same) const {
    size_t whole = 0;
    for (size_t i = 0; i < view_.inputs(); ++i) {
      if (view_.input(i).elements() == same.elements) ++whole;
    }
    return edge_tensor(whole == 1 && view_.inputs() == 2 ? Kind::channel_scale : Kind::add, same);
  }

  int64_t output_elements() const {
    return view_.wants(0) ? view_.graph().tensor(view_.node().outputs[0]).elements() : 0;
  }

  OnnxNodeView view_;
};

// The calls of nodes that a rule joins.
std::vector<EdgeCall> fused_calls(const OnnxGraph& graph, const FusionMatch& match) {
  const FusionRule& rule = *match.rule;
  if (!rule.kernel) return {};
  const OnnxNode& node = graph.nodes[static_cast<size_t>(match.nodes[rule.sizes_of])];
  switch (*rule.kernel) {
    case Kind::convolution:
    case Kind::depthwise:
    case Kind::linear:
    case Kind::gemv:
    case Kind::batched_matmul:
    case Kind::max_pool:
    case Kind::int8_linear:
    case Kind::traffic: {
      std::vector<EdgeCall> calls = NodeLowering(graph, node).list(onnx_operators(graph, node));
      for (const int64_t index : match.nodes) {
        const OnnxNode& own = graph.nodes[static_cast<size_t>(index)];
        if (own.operation != "DynamicQuantizeLinear") continue;
        for (const EdgeCall& call : NodeLowering(graph, own).list(onnx_operators(graph, own))) calls.push_back(call);
      }
      for (EdgeCall& call : calls) {
        if (auto* sizes = std::get_if<ConvolutionSizes>(&call.kernel.sizes)) {
          sizes->activation = rule.activation;
          sizes->accumulates = rule.accumulates;
        }
      }
      return calls;
    }
    case Kind::empty:
      return {};
    default: {
      const OnnxTensor& output = graph.tensor(node.outputs.front());
      const int64_t elements = std::max<int64_t>(1, output.elements());
      const int64_t width = output.dims.empty() ? 1 : std::max<int64_t>(1, output.dims.back());
      const int64_t runs = graph.runs(node);
      if (runs == 0) return {};
      return {
          {.kernel = edge_tensor(*rule.kernel, {.elements = elements, .rows = elements / width, .outputs = elements}),
           .count = runs}};
    }
  }
}

// The calls of a node on 8-bit tensors, as those of the operator that a runtime has for them.
std::vector<EdgeCall> quantized_calls(const OnnxGraph& graph, const QuantizedMatch& match) {
  const OnnxNode& node = graph.nodes[static_cast<size_t>(match.node)];
  std::vector<EdgeCall> calls = NodeLowering(graph, node).list(onnx_operators(graph, node));
  const Work traffic{.activations_read = Bytes(match.read_bytes), .written = Bytes(match.written_bytes)};
  for (EdgeCall& call : calls) {
    if (multiplies(call.kernel)) {
      call.scheme = Scheme::int8;
    } else if (node.operation == "Add") {
      const int64_t elements = std::max<int64_t>(1, graph.tensor(node.outputs.front()).elements());
      call.kernel = edge_tensor(Kind::int8_add, {.elements = elements, .outputs = elements});
    } else if (call.kernel.kind == Kind::max_pool || call.kernel.kind == Kind::softmax) {
      call.is_stand_in = true;  // sweeps have them in fp32
    } else {
      call.kernel = traffic_of(traffic);
    }
  }
  return calls;
}

// The kernels of an operator that stands in no graph.
std::vector<EdgeKernel> step_kernels(const KernelShape& shape) {
  if (const auto* product = std::get_if<GemmShape>(&shape)) return {product_kernel(*product, true)};
  if (const auto* norm = std::get_if<NormShape>(&shape)) return norm_kernels(*norm);
  if (const auto* softmax = std::get_if<SoftmaxShape>(&shape)) return {softmax_kernel(*softmax)};
  if (const auto* attention = std::get_if<AttentionShape>(&shape)) return attention_kernels(*attention);
  if (const auto* activation = std::get_if<ActivationShape>(&shape)) {
    const int64_t elements = activation->rows * activation->width;
    const TensorSizes sizes{.elements = elements, .outputs = elements};
    std::vector<EdgeKernel> kernels = {edge_tensor(Kind::sigmoid, sizes)};
    if (activation->gated) kernels.push_back(edge_tensor(Kind::add, sizes));  // a product of two tensors costs the same
    return kernels;
  }
  const Work work = count_work(shape);
  if (work.flops.value() > 0 && work.weights_read.value() > 0) {
    throw InputError({.source = "the model",
                      .value = std::string(family_name(shape)),
                      .expected = "a model of dense layers: no CPU sweep prices such operators"});
  }
  return {traffic_of(work)};
}

// In the format of the call. CPU runtimes quantize the inputs of products with int4 weights to 8 bits on the way, as
// llama.cpp does; other weights that are narrow alone have no kernels of their own.
std::optional<EdgeKernel> narrow_kernel(const EdgeCall& call) {
  if (call.scheme == Scheme::int8) return edge_in_int8(call.kernel);
  if (call.scheme == Scheme::int4_wo && !call.widens_weights) return edge_in_int4(call.kernel);
  return std::nullopt;
}

}  // namespace

EdgeLowering lower_edge_step(std::span<const Operator> operators) {
  EdgeLowering result;
  for (const Operator& own : operators) {
    if (std::holds_alternative<CollectiveShape>(own.shape)) continue;
    EdgeStep step{.name = own.name, .flops = count_work(own.shape).flops * static_cast<double>(own.count)};
    const auto* attention = std::get_if<AttentionShape>(&own.shape);
    const Scheme scheme = attention != nullptr ? plain_scheme(attention->kv_dtype) : scheme_of(own.shape);
    for (const EdgeKernel& kernel : step_kernels(own.shape)) {
      EdgeCall call{.kernel = kernel, .count = own.count};
      if (multiplies(kernel)) call.scheme = scheme;
      step.calls.push_back(call);
    }
    result.steps.push_back(std::move(step));
  }
  return result;
}

namespace {

// A product in fp32 of what DequantizeLinear makes: weights are made anew at every run (ONNX Runtime does not fold a
// DequantizeLinear of constants). No sweep has such products. `node` is the one whose calls the step has: what the
// nodes joined with it read is no operand of its product. False where it multiplies nothing of the kind.
bool mark_dequantized(const OnnxGraph& graph, const OnnxNode& node, EdgeStep& step) {
  if (!reads_dequantized(graph, node)) return false;
  bool found = false;
  for (EdgeCall& call : step.calls) {
    if (!multiplies(call.kernel)) continue;
    call.is_stand_in = found = true;
  }
  if (!found) return false;
  if (const Work work = weight_dequantization(graph, node); work.bytes().value() > 0)
    step.calls.push_back({.kernel = traffic_of(work), .count = graph.runs(node), .is_stand_in = true});
  return true;
}

}  // namespace

EdgeLowering lower_edge(const OnnxGraph& graph, const FusionRules& rules) {
  EdgeLowering result;
  const FusionMatcher matcher(graph, rules);
  std::vector<bool> taken(graph.nodes.size(), false);
  size_t other_types = 0, dequantized = 0;
  for (const QuantizedMatch& match : quantized_matches(graph, rules)) {
    EdgeStep step{.nodes = match.around, .rule = match.rule->name, .calls = quantized_calls(graph, match)};
    step.nodes.push_back(match.node);
    std::sort(step.nodes.begin(), step.nodes.end());
    for (const int64_t own : step.nodes) {
      taken[static_cast<size_t>(own)] = true;
      step.flops += flops_of(onnx_operators(graph, graph.nodes[static_cast<size_t>(own)]));
    }
    result.steps.push_back(std::move(step));
  }
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    const OnnxNode& node = graph.nodes[i];
    if (taken[i] || node.is_folded || node.control != OnnxControl::none || !graph.is_counted(node)) continue;
    EdgeStep step{.nodes = {static_cast<int64_t>(i)}};
    size_t priced = i;  // the node whose calls it has
    if (const std::optional<FusionMatch> match = matcher.match(static_cast<int64_t>(i), taken)) {
      step.rule = match->rule->name;
      step.calls = fused_calls(graph, *match);
      priced = static_cast<size_t>(match->nodes[match->rule->sizes_of]);
      step.is_dispatched = match->rule->kernel.has_value();
      for (size_t n = 1; n < match->nodes.size(); ++n) {
        if (!match->rule->nodes[n].stays) step.nodes.push_back(match->nodes[n]);
      }
      std::sort(step.nodes.begin(), step.nodes.end());
    } else {
      const std::vector<Operator> operators = onnx_operators(graph, node);
      step.calls = NodeLowering(graph, node).list(operators);
      step.flops = flops_of(operators);
    }
    for (const int64_t own : step.nodes) {
      taken[static_cast<size_t>(own)] = true;
      if (!step.rule.empty()) step.flops += flops_of(onnx_operators(graph, graph.nodes[static_cast<size_t>(own)]));
    }
    const bool computes = !step.calls.empty() && step.flops.value() > 0;
    const bool is_quantized = std::any_of(step.calls.begin(), step.calls.end(),
                                          [](const EdgeCall& call) { return call.scheme != Scheme::fp32; });
    if (!is_quantized) dequantized += mark_dequantized(graph, graph.nodes[priced], step) ? 1 : 0;
    if (!is_quantized && computes && OnnxNodeView(graph, node).type(0) != OnnxType::float32) ++other_types;
    result.steps.push_back(std::move(step));
  }
  std::stable_sort(result.steps.begin(), result.steps.end(),
                   [](const EdgeStep& a, const EdgeStep& b) { return a.nodes.back() < b.nodes.back(); });
  if (other_types > 0)
    result.notes.push_back(fmt::format("timed as fp32 although of another type: {}", counted(other_types, "step")));
  if (dequantized > 0)
    result.notes.push_back(
        fmt::format("outputs of DequantizeLinear that are multiplied in fp32, because {} has no quantized operator for "
                    "them: {}",
                    rules.runtime, counted(dequantized, "step")));
  return result;
}

EdgeLowering with_measured_formats(EdgeLowering lowering, const EdgePredictor& predictor) {
  size_t steps = 0;
  for (EdgeStep& step : lowering.steps) {
    bool is_unmeasured = false;
    for (EdgeCall& call : step.calls) {
      if (call.scheme == Scheme::fp32) continue;
      const std::optional<EdgeKernel> narrow = narrow_kernel(call);
      if (narrow && predictor.kinds.contains(narrow->kind)) {
        call.kernel = *narrow;
        call.scheme = Scheme::fp32;
      } else {
        is_unmeasured = true;
      }
    }
    if (is_unmeasured) ++steps;
  }
  if (steps > 0) {
    lowering.notes.push_back(fmt::format(
        "multiplied in formats narrower than fp32 that were not measured on this device: {}, with intervals "
        "from the best case of the format to the fp32 time",
        counted(steps, "step")));
  }
  return lowering;
}

EdgeKernel with_batch_times(const EdgeKernel& kernel, int64_t factor) {
  EdgeKernel result = kernel;
  if (auto* conv = std::get_if<ConvolutionSizes>(&result.sizes)) {
    conv->batch *= factor;
  } else if (auto* product = std::get_if<ProductSizes>(&result.sizes)) {
    if (kernel.kind == Kind::batched_matmul) {
      product->batch *= factor;
    } else {
      product->m *= factor;
      result.kind = product->m == 1 ? Kind::gemv : Kind::linear;
      if (is_int8(kernel.kind)) result.kind = edge_in_int8(result)->kind;
      if (is_int4(kernel.kind)) result.kind = edge_in_int4(result)->kind;
    }
  } else if (auto* tensor = std::get_if<TensorSizes>(&result.sizes)) {
    tensor->elements *= factor;
    tensor->rows *= factor;
    tensor->outputs *= factor;
  }
  return result;
}

}  // namespace foretoken
