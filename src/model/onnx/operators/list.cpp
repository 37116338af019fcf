#include "model/onnx/onnx_operator.h"

#include <map>
#include <utility>

#include "model/onnx/operators/rules.h"

namespace foretoken {
namespace {

namespace rules = onnx_rules;
using enum OnnxCost;

constexpr std::string_view microsoft = "com.microsoft";

// Add your operator here: name, domain, shape rule, what running it is like, FLOPs per element. The FLOPs of
// transcendental functions are those of a polynomial or a few steps of Newton's method.
constexpr OnnxOperator operators[] = {
    // One element after the other
    {"Abs", "", rules::foldable_unary, elementwise, 1},
    {"Neg", "", rules::foldable_unary, elementwise, 1},
    {"Ceil", "", rules::foldable_unary, elementwise, 1},
    {"Floor", "", rules::foldable_unary, elementwise, 1},
    {"Round", "", rules::foldable_unary, elementwise, 1},
    {"Sqrt", "", rules::foldable_unary, elementwise, 4},
    {"Sign", "", rules::same, elementwise, 1},
    {"Reciprocal", "", rules::same, elementwise, 4},
    {"Exp", "", rules::same, elementwise, 8},
    {"Log", "", rules::same, elementwise, 8},
    {"Sin", "", rules::same, elementwise, 8},
    {"Cos", "", rules::same, elementwise, 8},
    {"Tan", "", rules::same, elementwise, 8},
    {"Asin", "", rules::same, elementwise, 8},
    {"Acos", "", rules::same, elementwise, 8},
    {"Atan", "", rules::same, elementwise, 8},
    {"Sinh", "", rules::same, elementwise, 10},
    {"Cosh", "", rules::same, elementwise, 10},
    {"Asinh", "", rules::same, elementwise, 10},
    {"Acosh", "", rules::same, elementwise, 10},
    {"Atanh", "", rules::same, elementwise, 10},
    {"Erf", "", rules::same, elementwise, 10},
    {"Relu", "", rules::same, elementwise, 1},
    {"LeakyRelu", "", rules::same, elementwise, 2},
    {"ThresholdedRelu", "", rules::same, elementwise, 1},
    {"Elu", "", rules::same, elementwise, 10},
    {"Celu", "", rules::same, elementwise, 10},
    {"Selu", "", rules::same, elementwise, 10},
    {"Sigmoid", "", rules::same, elementwise, 10},
    {"HardSigmoid", "", rules::same, elementwise, 4},
    {"HardSwish", "", rules::same, elementwise, 5},
    {"Softplus", "", rules::same, elementwise, 12},
    {"Softsign", "", rules::same, elementwise, 6},
    {"Tanh", "", rules::same, elementwise, 10},
    {"Mish", "", rules::same, elementwise, 20},
    {"Gelu", "", rules::same, elementwise, 14},
    {"Swish", "", rules::same, elementwise, 11},
    {"Shrink", "", rules::same, elementwise, 2},
    {"Clip", "", rules::same, elementwise, 2},
    {"Not", "", rules::same_boolean, elementwise, 1},
    {"IsNaN", "", rules::same_boolean, elementwise, 1},
    {"IsInf", "", rules::same_boolean, elementwise, 1},
    {"BitwiseNot", "", rules::same, elementwise, 1},
    {"LRN", "", rules::same, elementwise, 15},
    {"Bernoulli", "", rules::random_like, elementwise, 10},
    {"Gelu", microsoft, rules::same, elementwise, 14},
    {"QuickGelu", microsoft, rules::same, elementwise, 12},
    {"BiasGelu", microsoft, rules::same, elementwise, 15},
    {"FastGelu", microsoft, rules::same, elementwise, 15},
    {"BiasAdd", microsoft, rules::same, elementwise, 2},

    // Several inputs, broadcast
    {"Add", "", rules::arithmetic, elementwise, 1},
    {"Sub", "", rules::arithmetic, elementwise, 1},
    {"Mul", "", rules::arithmetic, elementwise, 1},
    {"Div", "", rules::arithmetic, elementwise, 4},
    {"Mod", "", rules::arithmetic, elementwise, 4},
    {"Pow", "", rules::arithmetic, elementwise, 16},
    {"PRelu", "", rules::arithmetic, elementwise, 2},
    {"Max", "", rules::arithmetic, elementwise, 1},
    {"Min", "", rules::arithmetic, elementwise, 1},
    {"Sum", "", rules::arithmetic, elementwise, 1},
    {"Mean", "", rules::arithmetic, elementwise, 2},
    {"And", "", rules::arithmetic, elementwise, 1},
    {"Or", "", rules::arithmetic, elementwise, 1},
    {"Xor", "", rules::arithmetic, elementwise, 1},
    {"BitShift", "", rules::arithmetic, elementwise, 1},
    {"BitwiseAnd", "", rules::arithmetic, elementwise, 1},
    {"BitwiseOr", "", rules::arithmetic, elementwise, 1},
    {"BitwiseXor", "", rules::arithmetic, elementwise, 1},
    {"Equal", "", rules::comparison, elementwise, 1},
    {"Less", "", rules::comparison, elementwise, 1},
    {"LessOrEqual", "", rules::comparison, elementwise, 1},
    {"Greater", "", rules::comparison, elementwise, 1},
    {"GreaterOrEqual", "", rules::comparison, elementwise, 1},
    {"Where", "", rules::where, elementwise, 1},

    // Number formats
    {"Cast", "", rules::cast, elementwise, 1},
    {"CastLike", "", rules::cast, elementwise, 1},
    {"QuantizeLinear", "", rules::quantize, elementwise, 3},
    {"DequantizeLinear", "", rules::dequantize, elementwise, 2},
    {"DynamicQuantizeLinear", "", rules::dynamic_quantize, elementwise, 5},
    {"QuantizeLinear", microsoft, rules::quantize, elementwise, 3},
    {"DequantizeLinear", microsoft, rules::dequantize, elementwise, 2},
    {"QLinearAdd", microsoft, rules::quantized_binary, elementwise, 6},
    {"QLinearMul", microsoft, rules::quantized_binary, elementwise, 5},
    {"QLinearSigmoid", microsoft, rules::same, elementwise, 1},
    {"QLinearLeakyRelu", microsoft, rules::same, elementwise, 1},
    {"QLinearSoftmax", microsoft, rules::same, softmax},
    {"QLinearConcat", microsoft, rules::quantized_concat, elementwise, 3},

    // The same memory under another shape, or nothing left to do
    {"Identity", "", rules::identity, none},
    {"Dropout", "", rules::dropout, none},
    {"Reshape", "", rules::reshape, none},
    {"Flatten", "", rules::flatten, none},
    {"Squeeze", "", rules::squeeze, none},
    {"Unsqueeze", "", rules::unsqueeze, none},
    {"Constant", "", rules::constant, none},
    {"ConstantOfShape", "", rules::constant_of_shape, none},
    {"Shape", "", rules::shape, none},
    {"Size", "", rules::size, none},

    // Elements move
    {"Transpose", "", rules::transpose},
    {"Concat", "", rules::concat},
    {"Split", "", rules::split},
    {"Slice", "", rules::slice},
    {"Pad", "", rules::pad},
    {"Expand", "", rules::expand},
    {"Tile", "", rules::tile},
    {"DepthToSpace", "", rules::depth_to_space},
    {"SpaceToDepth", "", rules::space_to_depth},
    {"ReverseSequence", "", rules::same},
    {"Trilu", "", rules::same},
    {"Gather", "", rules::gather, gather},
    {"GatherElements", "", rules::gather_elements},
    {"GatherND", "", rules::gather_nd},
    {"Scatter", "", rules::same},
    {"ScatterElements", "", rules::same},
    {"ScatterND", "", rules::same},
    {"TensorScatter", "", rules::same},
    {"OneHot", "", rules::one_hot},
    {"EyeLike", "", rules::eye_like},
    {"Range", "", rules::range},
    {"RandomNormal", "", rules::random_of_shape, elementwise, 20},
    {"RandomUniform", "", rules::random_of_shape, elementwise, 10},
    {"RandomNormalLike", "", rules::random_like, elementwise, 20},
    {"RandomUniformLike", "", rules::random_like, elementwise, 10},
    {"Multinomial", "", rules::multinomial, reduction, 8},

    // Many elements become one, or are looked through
    {"ReduceSum", "", rules::reduce, reduction, 1},
    {"ReduceMean", "", rules::reduce, reduction, 1},
    {"ReduceMax", "", rules::reduce, reduction, 1},
    {"ReduceMin", "", rules::reduce, reduction, 1},
    {"ReduceProd", "", rules::reduce, reduction, 1},
    {"ReduceL1", "", rules::reduce, reduction, 2},
    {"ReduceL2", "", rules::reduce, reduction, 2},
    {"ReduceSumSquare", "", rules::reduce, reduction, 2},
    {"ReduceLogSum", "", rules::reduce, reduction, 1},
    {"ReduceLogSumExp", "", rules::reduce, reduction, 9},
    {"ArgMax", "", rules::arg_reduce, reduction, 1},
    {"ArgMin", "", rules::arg_reduce, reduction, 1},
    {"CumSum", "", rules::same, elementwise, 1},
    {"TopK", "", rules::top_k, reduction, 10},
    {"NonZero", "", rules::non_zero, reduction, 1},
    {"Unique", "", rules::unique, reduction, 20},
    {"Compress", "", rules::compress, reduction, 1},
    {"NonMaxSuppression", "", rules::non_max_suppression, reduction, 20},

    // Windows
    {"Conv", "", rules::convolution, convolution},
    {"ConvInteger", "", rules::integer_convolution, convolution},
    {"QLinearConv", "", rules::quantized_convolution, convolution},
    {"DeformConv", "", rules::convolution, convolution},
    {"FusedConv", microsoft, rules::convolution, convolution},
    {"ConvTranspose", "", rules::transposed_convolution, transposed_convolution},
    {"MaxPool", "", rules::pool, pool},
    {"AveragePool", "", rules::pool, pool},
    {"LpPool", "", rules::pool, pool},
    {"QLinearAveragePool", microsoft, rules::pool, pool},
    {"GlobalAveragePool", "", rules::global_pool, reduction, 1},
    {"GlobalMaxPool", "", rules::global_pool, reduction, 1},
    {"GlobalLpPool", "", rules::global_pool, reduction, 2},
    {"QLinearGlobalAveragePool", microsoft, rules::global_pool, reduction, 1},
    {"MaxUnpool", "", rules::max_unpool},
    {"Resize", "", rules::resize, elementwise, 7},
    {"Upsample", "", rules::resize, elementwise, 7},
    {"RoiAlign", "", rules::roi_align, elementwise, 32},
    {"GridSample", "", rules::grid_sample, elementwise, 12},

    // Multiplication
    {"MatMul", "", rules::matmul, multiply},
    {"MatMulInteger", "", rules::integer_matmul, multiply},
    {"QLinearMatMul", "", rules::quantized_matmul, multiply},
    {"Gemm", "", rules::gemm, multiply},
    {"FusedMatMul", microsoft, rules::matmul, multiply},
    {"FusedGemm", microsoft, rules::gemm, multiply},
    {"QGemm", microsoft, rules::gemm, multiply},
    {"DynamicQuantizeMatMul", microsoft, rules::matmul_to_float, multiply},
    {"MatMulIntegerToFloat", microsoft, rules::matmul_to_float, multiply},
    {"MatMulNBits", microsoft, rules::matmul_n_bits, multiply},
    {"Einsum", "", rules::einsum, einsum},
    {"Det", "", rules::determinant, reduction, 10},

    // Whole layers
    {"BatchNormalization", "", rules::batch_normalization, elementwise, 2},
    {"LayerNormalization", "", rules::normalization, norm},
    {"RMSNormalization", "", rules::normalization, norm},
    {"SimplifiedLayerNormalization", "", rules::normalization, norm},
    {"LpNormalization", "", rules::same, norm},
    {"InstanceNormalization", "", rules::same, group_norm},
    {"GroupNormalization", "", rules::same, group_norm},
    {"MeanVarianceNormalization", "", rules::same, group_norm},
    {"SkipLayerNormalization", microsoft, rules::skip_normalization, norm},
    {"SkipSimplifiedLayerNormalization", microsoft, rules::skip_normalization, norm},
    {"LayerNormalization", microsoft, rules::normalization, norm},
    {"GroupNorm", microsoft, rules::same, group_norm},
    {"EmbedLayerNormalization", microsoft, rules::embed_layer_normalization, elementwise, 10},
    {"Softmax", "", rules::same, softmax},
    {"LogSoftmax", "", rules::same, softmax},
    {"Hardmax", "", rules::same, softmax},
    {"LSTM", "", rules::recurrent, recurrent},
    {"DynamicQuantizeLSTM", microsoft, rules::recurrent, recurrent},
    {"GRU", "", rules::recurrent, recurrent},
    {"RNN", "", rules::recurrent, recurrent},
    {"Attention", "", rules::onnx_attention, attention},
    {"Attention", microsoft, rules::attention, attention},
    {"MultiHeadAttention", microsoft, rules::multi_head_attention, attention},
    {"GroupQueryAttention", microsoft, rules::group_query_attention, attention},
    {"RotaryEmbedding", "", rules::same, elementwise, 3},
    {"RotaryEmbedding", microsoft, rules::same, elementwise, 3},

    // Control flow
    {"If", "", rules::branch, control},
    {"Loop", "", rules::loop, control},
    {"Scan", "", rules::scan, control},
};

using OperatorIndex = std::map<std::pair<std::string_view, std::string_view>, const OnnxOperator*>;

const OperatorIndex& operator_index() {
  static const OperatorIndex index = [] {
    OperatorIndex made;
    for (const OnnxOperator& own : operators) made.emplace(std::pair(own.domain, own.name), &own);
    return made;
  }();
  return index;
}

}  // namespace

std::span<const OnnxOperator> all_onnx_operators() {
  return operators;
}

const OnnxOperator* find_onnx_operator(const OnnxNode& node) {
  const auto found = operator_index().find({node.domain, node.operation});
  return found == operator_index().end() ? nullptr : found->second;
}

}  // namespace foretoken
