// What a transpose does to its axes.
#pragma once

#include "model/onnx/node_view.h"

namespace foretoken {

struct TransposeOrder {
  OnnxDims dims;              // of the input
  std::vector<int64_t> axes;  // of the input, in the order of the output; empty: no transpose
};

TransposeOrder transpose_order(const OnnxNodeView& node);

bool swaps_last_axes(const TransposeOrder& order);   // and nothing else
bool moves_first_axis(const TransposeOrder& order);  // to before the last one, or behind it; the others stay in order
bool keeps_elements_in_order(const TransposeOrder& order);  // only sides of 1 move
bool moves_last_axis(const TransposeOrder& order);          // elements of a row do not stay together

}  // namespace foretoken
