#include "model/onnx/multiplication.h"

#include <utility>

#include <fmt/format.h>

#include "model/onnx/node_inference.h"

namespace foretoken {
namespace {

[[noreturn]] void fail_product(const OnnxNodeView& node, const OnnxDims& a, const OnnxDims& b) {
  node.fail(fmt::format("{} times {}", dims_text(a), dims_text(b)), "inner sizes that are equal");
}

void swap_last(OnnxDims& dims) {
  if (dims.size() >= 2) std::swap(dims[dims.size() - 1], dims[dims.size() - 2]);
}

}  // namespace

MatrixProduct product_of(const OnnxNodeView& node, size_t left, size_t right) {
  OnnxDims a = node.dims(left), b = node.dims(right);
  if (node.attribute("transA", 0) != 0) swap_last(a);
  if (node.attribute("transB", 0) != 0) swap_last(b);
  const bool row = a.size() == 1, column = b.size() == 1;
  if (row) a.insert(a.begin(), 1);
  if (column) b.push_back(1);
  if (a.size() < 2 || b.size() < 2 || a.back() != b[b.size() - 2])
    fail_product(node, node.dims(left), node.dims(right));
  MatrixProduct product{.m = a[a.size() - 2], .n = b.back(), .k = a.back()};
  const OnnxDims left_batch(a.begin(), a.end() - 2), right_batch(b.begin(), b.end() - 2);
  const std::optional<OnnxDims> batch = broadcast(left_batch, right_batch);
  if (!batch) fail_product(node, node.dims(left), node.dims(right));
  product.output = *batch;
  if (!row) product.output.push_back(product.m);
  if (!column) product.output.push_back(product.n);
  product.batch = onnx_elements(*batch).value_or(0);
  if (onnx_elements(right_batch) == 1) {
    product.m *= product.batch;
    product.batch = 1;
  }
  return product;
}

MatrixProduct gemm_of(const OnnxNodeView& node, size_t right) {
  OnnxDims a = node.dims(0), b = node.dims(right);
  if (node.attribute("transA", 0) != 0) swap_last(a);
  if (node.attribute("transB", 0) != 0) swap_last(b);
  if (a.size() != 2 || b.size() != 2 || a[1] != b[0]) fail_product(node, node.dims(0), node.dims(right));
  return {.m = a[0], .n = b[1], .k = a[1], .output = {a[0], b[1]}};
}

}  // namespace foretoken
