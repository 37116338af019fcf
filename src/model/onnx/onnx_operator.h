// The operators we know: one line each in operators/list.cpp.
#pragma once

#include <span>
#include <string_view>

#include "model/onnx/graph.h"
#include "model/onnx/node_inference.h"

namespace foretoken {

// What running an operator is like; work.cpp counts by it.
enum class OnnxCost : uint8_t {
  none,         // nothing is moved: a view, or known beforehand
  traffic,      // inputs read, outputs written
  elementwise,  // and some FLOPs for each element of the output
  reduction,    // FLOPs for each element of the input
  convolution,
  transposed_convolution,
  multiply,  // MatMul, Gemm and their kin
  einsum,
  norm,  // rows of the normalised axes
  group_norm,
  softmax,
  pool,
  gather,
  recurrent,  // LSTM, GRU, RNN
  attention,
  control
};

struct OnnxOperator {
  std::string_view name;
  std::string_view domain;  // "" = ai.onnx
  void (*infer)(NodeInference& node);
  OnnxCost cost = OnnxCost::traffic;
  double flops = 0;  // per element, where the cost says so
};

std::span<const OnnxOperator> all_onnx_operators();
const OnnxOperator* find_onnx_operator(const OnnxNode& node);  // nullptr: unknown

}  // namespace foretoken
