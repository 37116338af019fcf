// From nodes to calls of kernel families.
#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "model/onnx/einsum.h"
#include "model/onnx/multiplication.h"
#include "model/onnx/onnx_operator.h"
#include "model/onnx/windows.h"
#include "model/onnx/work.h"

namespace foretoken {
namespace {

// A type of the same size, for what is only moved.
DType storage_dtype(OnnxType type) {
  if (const std::optional<DType> known = onnx_dtype(type)) return *known;
  const double bytes = onnx_element_bytes(type);
  return bytes >= 8 ? DType::fp64 : bytes >= 4 ? DType::fp32 : bytes >= 2 ? DType::bf16 : DType::int8;
}

// How a multiply of tensors of this type computes. Double precision has no scheme of its own: it counts as fp32.
Scheme multiply_scheme(OnnxType type) {
  switch (storage_dtype(type)) {
    case DType::int8:
    case DType::int4:
      return Scheme::int8;
    case DType::fp8:
      return Scheme::fp8;
    case DType::fp16:
      return Scheme::fp16;
    case DType::bf16:
      return Scheme::bf16;
    default:
      return Scheme::fp32;
  }
}

int64_t whole(double ratio) {
  return static_cast<int64_t>(std::llround(ratio));
}

// The kernels of one node, in the order they run.
class NodeKernels {
 public:
  NodeKernels(const OnnxGraph& graph, const OnnxNode& node) : node_(graph, node) {}

  std::vector<Operator> list() {
    const OnnxOperator* known = find_onnx_operator(node_.node());
    const OnnxTensor* output = first_output();
    if (output == nullptr || output->elements() == 0) return {};
    switch (known == nullptr ? OnnxCost::traffic : known->cost) {
      case OnnxCost::none:
      case OnnxCost::control:
        break;
      case OnnxCost::traffic:
        add_traffic();
        break;
      case OnnxCost::elementwise:
        add_elementwise(output->elements(), known->flops * operands());
        break;
      case OnnxCost::reduction:
        add_reduction(known->flops);
        break;
      case OnnxCost::convolution:
        add_convolution();
        break;
      case OnnxCost::transposed_convolution:
        add_transposed_convolution();
        break;
      case OnnxCost::multiply:
        add_multiply();
        break;
      case OnnxCost::einsum:
        add_einsum(*output);
        break;
      case OnnxCost::norm:
        add_norm();
        break;
      case OnnxCost::group_norm:
        add_group_norm();
        break;
      case OnnxCost::softmax:
        add_softmax();
        break;
      case OnnxCost::pool:
        add_pool(*output);
        break;
      case OnnxCost::gather:
        add_gather(*output);
        break;
      case OnnxCost::recurrent:
        add_recurrent();
        break;
      case OnnxCost::attention:
        add_attention(*output);
        break;
    }
    return std::move(kernels_);
  }

  std::vector<Operator> traffic() {
    add_traffic();
    return std::move(kernels_);
  }

 private:
  const OnnxTensor* first_output() const {
    for (const int64_t output : node_.node().outputs) {
      if (output >= 0) return &node_.graph().tensor(output);
    }
    return nullptr;
  }

  void add(KernelShape shape, int64_t count = 1, StepPart part = StepPart::feed_forward) {
    if (count > 0) kernels_.push_back({.name = node_.node().name, .part = part, .count = count, .shape = shape});
  }

  // Sum, Max, Min and Mean take any number of inputs: one operation for each but the first.
  double operands() const {
    const std::string& operation = node_.node().operation;
    const bool many = operation == "Sum" || operation == "Max" || operation == "Min" || operation == "Mean";
    return many ? std::max(1.0, static_cast<double>(node_.inputs()) - 1) : 1;
  }

  // So many elements with as many tensors of that size as the node's bytes come to.
  void add_elementwise(int64_t elements, double flops_per_element) {
    const Work traffic = onnx_traffic(node_.graph(), node_.node());
    const OnnxTensor& output = *first_output();
    const double tensor = static_cast<double>(elements) * std::max(onnx_element_bytes(output.type), 0.125);
    add(ElementwiseShape{.elements = elements,
                         .inputs = whole((traffic.weights_read + traffic.activations_read).value() / tensor),
                         .outputs = std::max<int64_t>(1, whole(traffic.written.value() / tensor)),
                         .flops_per_element = flops_per_element,
                         .dtype = storage_dtype(output.type)});
  }

  void add_traffic() {
    const OnnxTensor* output = first_output();
    if (output != nullptr && output->elements() > 0) add_elementwise(output->elements(), 0);
  }

  void add_reduction(double flops_per_element) {
    const OnnxTensor& input = node_.input(0);
    if (input.elements() == 0) return;
    add(ElementwiseShape{.elements = input.elements(),
                         .inputs = 1,
                         .outputs = 0,
                         .flops_per_element = flops_per_element,
                         .dtype = storage_dtype(input.type)});
  }

  // A convolution of `window` over any number of sides. Equal sides as they are; else one with the same positions and
  // taps, and so the same FLOPs: the input is as large as the positions need. A third side becomes batch and channels.
  ConvShape convolution_of(const OnnxWindow& window, int64_t batch, int64_t in_channels, int64_t out_channels,
                           int64_t groups, Scheme scheme, const OnnxDims& input_sides) const {
    ConvShape shape{
        .batch = batch, .in_channels = in_channels, .out_channels = out_channels, .groups = groups, .scheme = scheme};
    const size_t sides = window.kernel.size();
    for (size_t i = 0; i + 2 < sides; ++i) {
      shape.batch *= window.output[i];
      shape.in_channels *= window.kernel[i];
    }
    const size_t last = sides - 1, first = sides >= 2 ? sides - 2 : last;
    const bool flat = sides == 1;
    const auto all_equal = [&](const std::vector<int64_t>& list) { return flat || list[first] == list[last]; };
    const bool regular = all_equal(window.strides) && all_equal(window.dilations);
    shape.stride = regular ? window.strides[last] : 1;
    shape.dilation = regular ? window.dilations[last] : 1;
    const auto needed = [&](size_t side) {
      return (window.output[side] - 1) * shape.stride + shape.dilation * (window.kernel[side] - 1) + 1;
    };
    shape.kernel_height = flat ? 1 : window.kernel[first];
    shape.kernel_width = window.kernel[last];
    shape.height = flat ? 1 : needed(first);
    shape.width = needed(last);
    const int64_t pad = window.pads[last];
    bool even = !flat && sides == 2 && regular && pad >= 0;
    for (const int64_t own : window.pads) even = even && own == pad;
    if (even) {
      shape.padding = pad;
      shape.height = input_sides[first];
      shape.width = input_sides[last];
    }
    return shape;
  }

  void add_convolution() {
    const bool quantized = node_.node().operation == "QLinearConv";
    const OnnxDims& input = node_.dims(0);
    const OnnxDims& weight = node_.dims(quantized ? 3 : 1);
    if (input.size() < 3 || weight.size() != input.size()) return add_traffic();
    const OnnxDims sides(input.begin() + 2, input.end());
    const OnnxWindow window = onnx_window(node_, sides, {weight.begin() + 2, weight.end()});
    add(convolution_of(window, input[0], input[1], weight[0], node_.attribute("group", 1),
                       multiply_scheme(node_.type(0)), sides));
  }

  // The convolution whose gradient it is: from the output back to the input, with the same products.
  void add_transposed_convolution() {
    const OnnxDims& input = node_.dims(0);
    const OnnxDims& weight = node_.dims(1);
    if (input.size() < 3 || weight.size() != input.size()) return add_traffic();
    const WindowLists lists = window_lists(node_, input.size() - 2);
    const int64_t groups = node_.attribute("group", 1);
    const OnnxWindow window{.kernel = {weight.begin() + 2, weight.end()},
                            .strides = lists.strides,
                            .dilations = lists.dilations,
                            .pads = std::vector<int64_t>(2 * lists.strides.size(), -1),
                            .output = {input.begin() + 2, input.end()}};
    add(convolution_of(window, input[0], weight[1] * groups, input[1], groups, multiply_scheme(node_.type(0)), {}));
  }

  void add_product(const MatrixProduct& product, Scheme scheme) {
    if (product.m * product.n == 0 || product.k == 0 || product.batch == 0) return;
    add(GemmShape{.m = product.m, .n = product.n, .k = product.k, .batch = product.batch, .scheme = scheme});
  }

  void add_multiply() {
    const std::string& operation = node_.node().operation;
    const Scheme scheme = multiply_scheme(node_.type(0));
    if (operation == "Gemm" || operation == "FusedGemm") return add_product(gemm_of(node_, 1), scheme);
    if (operation == "QGemm") return add_product(gemm_of(node_, 3), Scheme::int8);
    if (operation == "QLinearMatMul") return add_product(product_of(node_, 0, 3), Scheme::int8);
    if (operation == "DynamicQuantizeMatMul") return add_product(product_of(node_, 0, 1), Scheme::int8);
    if (operation == "MatMulNBits") {
      const int64_t k = std::max<int64_t>(node_.attribute("K", 1), 1);
      const int64_t bits = node_.attribute("bits", 4);
      add_product({.m = node_.input(0).elements() / k, .n = node_.attribute("N", 1), .k = k},
                  bits == 8 ? Scheme::int8_wo : Scheme::int4_wo);
      return;
    }
    add_product(product_of(node_, 0, 1), scheme);
  }

  void add_einsum(const OnnxTensor& output) {
    const std::optional<EinsumSizes> sizes = einsum_sizes(node_);
    if (sizes && sizes->matrix) return add_product(*sizes->matrix, multiply_scheme(node_.type(0)));
    const double products = sizes ? sizes->products : 0;
    add_elementwise(output.elements(), 2 * products / static_cast<double>(output.elements()));
  }

  void add_rows(int64_t width, bool layer_norm) {
    const OnnxTensor& input = node_.input(0);
    if (width <= 0 || input.elements() == 0) return;
    add(NormShape{.rows = input.elements() / width,
                  .width = width,
                  .layer_norm = layer_norm,
                  .adds_residual = node_.node().operation.starts_with("Skip"),
                  .dtype = storage_dtype(input.type)});
  }

  void add_norm() {
    const OnnxDims& dims = node_.dims(0);
    if (dims.empty()) return;
    const std::string& operation = node_.node().operation;
    const size_t axis = node_.axis(node_.attribute("axis", -1), dims.size());
    int64_t width = 1;
    // LpNormalization works along one axis, the others over all from theirs on.
    const size_t end = operation == "LpNormalization" ? axis + 1 : dims.size();
    for (size_t i = axis; i < end; ++i) width *= dims[i];
    add_rows(width, operation == "LayerNormalization" || operation == "SkipLayerNormalization");
  }

  // Each group of channels of each picture is one row.
  void add_group_norm() {
    const OnnxDims& dims = node_.dims(0);
    if (dims.size() < 2) return;
    const bool channels_last = node_.node().operation == "GroupNorm" && node_.attribute("channels_last", 1) != 0;
    const int64_t channels = channels_last ? dims.back() : dims[1];
    const int64_t groups = node_.attribute("num_groups", node_.attribute("groups", channels));
    const int64_t rows = dims[0] * std::clamp<int64_t>(groups, 1, std::max<int64_t>(channels, 1));
    if (rows > 0) add_rows(node_.input(0).elements() / rows, true);
  }

  // Up to opset 12 all axes from the given one on are one row.
  void add_softmax() {
    const OnnxTensor& input = node_.input(0);
    const bool flattens = node_.node().domain.empty() && node_.opset() > 0 && node_.opset() < 13;
    if (input.dims.empty()) return;
    const size_t axis = node_.axis(node_.attribute("axis", flattens ? 1 : -1), input.dims.size());
    int64_t width = input.dims[axis];
    for (size_t i = axis + 1; flattens && i < input.dims.size(); ++i) width *= input.dims[i];
    if (width == 0) return;
    add(SoftmaxShape{.rows = input.elements() / width, .width = width, .dtype = storage_dtype(input.type)});
  }

  // One operation for each element under the window.
  void add_pool(const OnnxTensor& output) {
    const OnnxDims& input = node_.dims(0);
    const std::vector<int64_t> kernel = node_.list_attribute("kernel_shape");
    if (input.size() < 3 || kernel.size() != input.size() - 2) return add_traffic();
    const OnnxWindow window = onnx_window(node_, {input.begin() + 2, input.end()}, kernel);
    const bool square = window.kernel.size() == 2 && window.kernel[0] == window.kernel[1] &&
                        window.strides[0] == window.strides[1] && window.dilations[0] == 1 && window.dilations[1] == 1;
    if (!square) {
      double taps = 1;
      for (const int64_t side : window.kernel) taps *= static_cast<double>(side);
      add_elementwise(output.elements(), taps);
      return;
    }
    const auto needed = [&](size_t side) {
      return (window.output[side] - 1) * window.strides[side] + window.kernel[side];
    };
    add(PoolShape{.batch = input[0],
                  .channels = input[1],
                  .height = needed(0),
                  .width = needed(1),
                  .kernel = window.kernel[0],
                  .stride = window.strides[0],
                  .dtype = storage_dtype(output.type)});
  }

  // Rows of a table of weights are an embedding; else elements move.
  void add_gather(const OnnxTensor& output) {
    const OnnxTensor& table = node_.input(0);
    const int64_t width = table.dims.empty() ? 0 : table.dims.back();
    const bool rows = table.dims.size() == 2 && node_.attribute("axis", 0) == 0 && table.is_constant && width > 0;
    if (!rows) return add_traffic();
    add(EmbeddingShape{.tokens = output.elements() / width, .width = width, .dtype = storage_dtype(table.type)}, 1,
        StepPart::embedding);
  }

  // The inputs of all steps at once, the state step after step, and the gates.
  void add_recurrent() {
    const OnnxDims& weight = node_.dims(1);
    const OnnxDims& state = node_.dims(2);
    const OnnxDims& input = node_.dims(0);
    if (weight.size() != 3 || state.size() != 3 || input.size() != 3) return add_traffic();
    const bool batch_first = node_.attribute("layout", 0) != 0;
    const int64_t steps = batch_first ? input[1] : input[0], batch = batch_first ? input[0] : input[1];
    // Weights are [directions, gates, width], or turned round (DynamicQuantizeLSTM): their sizes tell as much either
    // way.
    const int64_t directions = weight[0], width = input[2];
    const int64_t gates = width == 0 ? 0 : weight[1] * weight[2] / width;
    const int64_t hidden = gates == 0 ? 0 : state[1] * state[2] / gates;
    const Scheme scheme = multiply_scheme(node_.type(0));
    if (steps * batch == 0 || hidden == 0) return;
    add(GemmShape{.m = steps * batch, .n = gates, .k = width, .scheme = scheme}, directions);
    add(GemmShape{.m = batch, .n = gates, .k = hidden, .scheme = scheme}, steps * directions);
    add(ElementwiseShape{.elements = batch * hidden,
                         .inputs = std::max<int64_t>(1, gates / hidden),
                         .outputs = 1,
                         .flops_per_element = 10 * static_cast<double>(std::max<int64_t>(1, gates / hidden)),
                         .dtype = storage_dtype(node_.type(0))},
        steps * directions);
  }

  void add_attention(const OnnxTensor& output) {
    const std::string& operation = node_.node().operation;
    AttentionShape shape{.phase = AttentionPhase::encoder,
                         .causal = false,
                         .dtype = storage_dtype(output.type),
                         .kv_dtype = storage_dtype(output.type)};
    const OnnxDims &query = node_.dims(0), &key = node_.dims(1), &value = node_.dims(2);
    const bool same_rank = key.size() == query.size() && value.size() == query.size() && query.size() <= 4;
    if (query.size() < 3 || output.dims.empty() || (node_.node().domain.empty() && !same_rank)) return add_traffic();
    shape.batch = query[0];
    if (node_.node().domain.empty()) {
      const bool flat = query.size() == 3;
      shape.heads = flat ? node_.attribute("q_num_heads", 1) : query[1];
      shape.kv_heads = flat ? node_.attribute("kv_num_heads", 1) : key[1];
      shape.q_len = flat ? query[1] : query[2];
      shape.kv_len = (flat ? key[1] : key[2]) + past_length(4);
      shape.head_dim = flat ? query[2] / std::max<int64_t>(shape.heads, 1) : query[3];
      shape.value_dim = flat ? value[2] / std::max<int64_t>(shape.kv_heads, 1) : value[3];
      set_causal(shape, node_.attribute("is_causal", 0) != 0);
    } else {
      shape.heads = shape.kv_heads = std::max<int64_t>(node_.attribute("num_heads", 1), 1);
      shape.q_len = query[1];
      shape.value_dim = output.dims.back() / shape.heads;
      shape.head_dim = shape.value_dim;
      shape.kv_len = query[1];
      if (operation == "Attention") {
        if (key.size() != 2) return add_traffic();
        add_product({.m = query[0] * query[1], .n = key[1], .k = query[2]}, multiply_scheme(node_.type(0)));
        shape.kv_len += node_.rank(4) == 5 ? node_.dims(4)[3] : 0;
      } else if (operation == "MultiHeadAttention") {
        if (key.size() >= 3) shape.kv_len = key.size() == 4 ? key[2] : key[1];
        shape.kv_len += past_length(6);
      } else {
        shape.kv_heads = std::max<int64_t>(node_.attribute("kv_num_heads", shape.heads), 1);
        shape.kv_len = std::max(shape.kv_len, past_length(3));
      }
      set_causal(shape, operation == "GroupQueryAttention" || node_.attribute("unidirectional", 0) != 0);
    }
    const int64_t least = std::min({shape.heads, shape.kv_heads, shape.q_len, shape.kv_len, shape.head_dim});
    if (least < 1) return add_traffic();
    add(shape, 1, StepPart::attention);
  }

  int64_t past_length(size_t input) const { return node_.rank(input) == 4 ? node_.dims(input)[2] : 0; }

  static void set_causal(AttentionShape& shape, bool causal) {
    shape.causal = causal;
    if (causal) shape.phase = shape.q_len == 1 ? AttentionPhase::decode : AttentionPhase::prefill;
  }

  OnnxNodeView node_;
  std::vector<Operator> kernels_;
};

std::vector<Operator> operators_of_run(const OnnxGraph& graph, const OnnxNode& node) {
  try {
    return NodeKernels(graph, node).list();
  } catch (const InputError&) {
    // Sizes that are only assumed need not fit together; inference refused all others.
    return NodeKernels(graph, node).traffic();
  }
}

}  // namespace

std::vector<Operator> onnx_operators(const OnnxGraph& graph, const OnnxNode& node) {
  const int64_t runs = graph.runs(node);
  if (node.is_folded || !graph.is_counted(node) || runs == 0) return {};
  std::vector<Operator> operators = operators_of_run(graph, node);
  if (runs == 1) return operators;
  for (Operator& own : operators) own.count = own.count > most_onnx_runs / runs ? most_onnx_runs : own.count * runs;
  return operators;
}

std::vector<Operator> onnx_operators(const OnnxGraph& graph) {
  std::vector<Operator> all;
  for (const OnnxNode& node : graph.nodes) {
    for (Operator& own : onnx_operators(graph, node)) all.push_back(std::move(own));
  }
  return all;
}

}  // namespace foretoken
