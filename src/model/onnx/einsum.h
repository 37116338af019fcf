// The sizes of an Einsum node.
#pragma once

#include <optional>

#include "model/onnx/multiplication.h"
#include "model/onnx/node_view.h"

namespace foretoken {

struct EinsumSizes {
  OnnxDims output;
  double products = 1;                  // multiplications: all letters' sizes together, for each operand but the first
  std::optional<MatrixProduct> matrix;  // two operands: letters in both are the batch, or summed over
};

// From its equation ("bhqd,bhkd->bhqk"), with or without an arrow. Nothing for one with an ellipsis. InputError where
// a letter has two sizes.
std::optional<EinsumSizes> einsum_sizes(const OnnxNodeView& node);

}  // namespace foretoken
