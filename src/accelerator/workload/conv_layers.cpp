#include "accelerator/workload/conv_layers.h"

#include <algorithm>

namespace foretoken {

ConvLayer conv_layer(const NetworkLayer& layer) {
  refuse_dilation(layer);
  if (const auto* gemm = std::get_if<GemmSize>(&layer.work)) {
    return {.name = layer.name,
            .channels = gemm->k * gemm->batch,
            .filters = gemm->n * gemm->batch,
            .height = gemm->m,
            .groups = gemm->batch};
  }
  const auto& conv = std::get<ConvShape>(layer.work);
  return {.name = layer.name,
          .batch = conv.batch,
          .channels = conv.in_channels,
          .filters = conv.out_channels,
          .height = conv.height,
          .width = conv.width,
          .filter_rows = conv.kernel_height,
          .filter_columns = conv.kernel_width,
          .stride = conv.stride,
          .padding = conv.padding,
          .groups = conv.groups};
}

void chain_zero_shares(std::span<ConvLayer> layers) {
  for (size_t i = 0; i < layers.size(); ++i) {
    layers[i].ifmap_compressed = i > 0;
    layers[i].ofmap_zero_share = layers[std::min(i + 1, layers.size() - 1)].ifmap_zero_share;
  }
}

}  // namespace foretoken
