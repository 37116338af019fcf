// What a layer computes, counted apart from the analysis.
#pragma once

#include "accelerator/dataflow/dataflow_layer.h"

namespace foretoken {

// Multiplications of real elements, strides respected.
inline int64_t mac_count(const DataflowLayer& layer) {
  int64_t count = 1;
  for (const LayerDim dim : all_layer_dims) {
    const int64_t size = layer.sizes[dim];
    if (size == 0) continue;
    const std::optional<LayerDim> window = window_of(dim);
    count *= window ? output_rows(size, layer.sizes[*window], layer.stride(dim)) : size;
  }
  return count;
}

}  // namespace foretoken
