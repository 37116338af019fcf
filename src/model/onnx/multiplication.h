// The sizes of a product of matrices.
#pragma once

#include "model/onnx/node_view.h"

namespace foretoken {

// `batch` products of [m, k] and [k, n].
struct MatrixProduct {
  int64_t batch = 1, m = 1, n = 1, k = 1;
  OnnxDims output;
};

// numpy's matmul of two inputs: leading sides broadcast, a vector is a row or a column. A matrix that all rows of the
// left input share makes one large product instead of many. transA and transB of FusedMatMul are heeded. InputError
// where the inner sizes differ.
MatrixProduct product_of(const OnnxNodeView& node, size_t left, size_t right);

// Gemm: two matrices, either of them transposed.
MatrixProduct gemm_of(const OnnxNodeView& node, size_t right);

}  // namespace foretoken
