#include "model/onnx/multiplication.h"

#include <algorithm>

#include <fmt/format.h>

#include "model/onnx/einsum.h"
#include "model/onnx/operators/rules.h"

namespace foretoken::onnx_rules {
namespace {

void put_product(NodeInference& node, size_t right, OnnxType type) {
  node.output(0, type, product_of(node, 0, right).output);
}

}  // namespace

void matmul(NodeInference& node) {
  put_product(node, 1, node.type(0));
}

void integer_matmul(NodeInference& node) {
  put_product(node, 1, OnnxType::int32);
}

// a, its scale and zero point, b, its scale and zero point, scale and zero point of the output
void quantized_matmul(NodeInference& node) {
  put_product(node, 3, node.type(7) == OnnxType::undefined ? node.type(0) : node.type(7));
}

void matmul_to_float(NodeInference& node) {
  put_product(node, 1, is_real(node.type(0)) ? node.type(0) : OnnxType::float32);
}

// com.microsoft: B is packed; K and N are attributes.
void matmul_n_bits(NodeInference& node) {
  OnnxDims dims = node.dims(0);
  if (dims.empty() || dims.back() != node.attribute("K", 0)) node.fail(dims_text(dims), "a last side of K");
  const int64_t columns = node.attribute("N", 0);
  if (std::max(columns, dims.back()) > int64_t{1} << 30) node.fail(fmt::format("N = {}", columns), "at most 2^30");
  dims.back() = columns;
  node.output(0, node.type(0), std::move(dims));
}

void gemm(NodeInference& node) {
  const MatrixProduct product = gemm_of(node, node.node().operation == "QGemm" ? 3 : 1);
  node.output(0, node.type(0), product.output);
}

void einsum(NodeInference& node) {
  const std::optional<EinsumSizes> sizes = einsum_sizes(node);
  if (sizes) node.output(0, node.type(0), sizes->output);
}

void determinant(NodeInference& node) {
  OnnxDims dims = node.dims(0);
  if (dims.size() < 2) node.fail(dims_text(dims), "matrices");
  dims.resize(dims.size() - 2);
  node.output(0, node.type(0), std::move(dims));
}

}  // namespace foretoken::onnx_rules
