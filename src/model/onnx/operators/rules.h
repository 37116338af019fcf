// The shape rules of operators, by kind. A rule reads its node's inputs and attributes and sets its outputs.
#pragma once

#include "model/onnx/node_inference.h"

namespace foretoken::onnx_rules {

// elementwise.cpp
void same(NodeInference& node);          // type and shape of the first input
void same_boolean(NodeInference& node);  // its shape, booleans
void foldable_unary(NodeInference& node);
void arithmetic(NodeInference& node);  // any number of inputs, broadcast
void comparison(NodeInference& node);
void where(NodeInference& node);
void cast(NodeInference& node);
void quantize(NodeInference& node);
void dequantize(NodeInference& node);
void dynamic_quantize(NodeInference& node);
void quantized_binary(NodeInference& node);  // QLinearAdd, QLinearMul

// movement.cpp: elements move, none is computed
void identity(NodeInference& node);
void reshape(NodeInference& node);
void flatten(NodeInference& node);
void squeeze(NodeInference& node);
void unsqueeze(NodeInference& node);
void transpose(NodeInference& node);
void concat(NodeInference& node);
void quantized_concat(NodeInference& node);
void split(NodeInference& node);
void slice(NodeInference& node);
void pad(NodeInference& node);
void expand(NodeInference& node);
void tile(NodeInference& node);
void depth_to_space(NodeInference& node);
void space_to_depth(NodeInference& node);

// gathering.cpp
void gather(NodeInference& node);
void gather_elements(NodeInference& node);
void gather_nd(NodeInference& node);
void one_hot(NodeInference& node);
void top_k(NodeInference& node);
void non_zero(NodeInference& node);
void unique(NodeInference& node);
void compress(NodeInference& node);
void non_max_suppression(NodeInference& node);

// constants.cpp: what is known from shapes and attributes alone
void constant(NodeInference& node);
void constant_of_shape(NodeInference& node);
void shape(NodeInference& node);
void size(NodeInference& node);
void range(NodeInference& node);
void eye_like(NodeInference& node);
void random_of_shape(NodeInference& node);
void random_like(NodeInference& node);
void multinomial(NodeInference& node);

// reduction.cpp
void reduce(NodeInference& node);
void arg_reduce(NodeInference& node);

// windows.cpp: convolution, pooling, resampling
void convolution(NodeInference& node);
void quantized_convolution(NodeInference& node);  // QLinearConv
void integer_convolution(NodeInference& node);    // ConvInteger
void transposed_convolution(NodeInference& node);
void pool(NodeInference& node);
void global_pool(NodeInference& node);
void max_unpool(NodeInference& node);
void resize(NodeInference& node);
void roi_align(NodeInference& node);
void grid_sample(NodeInference& node);

// multiplication.cpp
void matmul(NodeInference& node);
void integer_matmul(NodeInference& node);    // MatMulInteger
void quantized_matmul(NodeInference& node);  // QLinearMatMul
void matmul_to_float(NodeInference& node);   // DynamicQuantizeMatMul, MatMulIntegerToFloat
void matmul_n_bits(NodeInference& node);
void gemm(NodeInference& node);
void einsum(NodeInference& node);
void determinant(NodeInference& node);

// layers.cpp: whole layers in one operator
void normalization(NodeInference& node);  // output as the input, statistics where wanted
void batch_normalization(NodeInference& node);
void skip_normalization(NodeInference& node);
void embed_layer_normalization(NodeInference& node);
void dropout(NodeInference& node);
void recurrent(NodeInference& node);
void attention(NodeInference& node);  // com.microsoft Attention
void multi_head_attention(NodeInference& node);
void group_query_attention(NodeInference& node);
void onnx_attention(NodeInference& node);  // ai.onnx 23

// control.cpp
void branch(NodeInference& node);
void loop(NodeInference& node);
void scan(NodeInference& node);

}  // namespace foretoken::onnx_rules
