#include "accelerator/dataflow/dataflow_network.h"

namespace foretoken {
namespace {

DataflowLayer product_layer(const GemmSize& gemm) {
  DataflowLayer layer{.type = DataflowLayerType::gemm};
  layer.sizes[LayerDim::M] = gemm.m;
  layer.sizes[LayerDim::N] = gemm.n;
  layer.sizes[LayerDim::K] = gemm.k;
  if (gemm.batch > 1) {
    layer.type = DataflowLayerType::bmm;
    layer.sizes[LayerDim::B] = gemm.batch;
  }
  return layer;
}

DataflowLayer convolution_layer(const ConvShape& conv) {
  using enum LayerDim;
  DataflowLayer layer{.type = DataflowLayerType::conv, .stride_y = conv.stride, .stride_x = conv.stride};
  layer.sizes[K] = conv.out_channels / conv.groups;
  layer.sizes[C] = conv.in_channels / conv.groups;
  layer.sizes[R] = conv.kernel_height;
  layer.sizes[S] = conv.kernel_width;
  layer.sizes[Y] = conv.height + 2 * conv.padding;
  layer.sizes[X] = conv.width + 2 * conv.padding;
  if (conv.batch > 1) layer.sizes[N] = conv.batch;
  if (conv.groups == 1) return layer;
  if (conv.groups == conv.in_channels && conv.groups == conv.out_channels) {
    layer.type = DataflowLayerType::depthwise_conv;
    layer.sizes[C] = conv.in_channels;
    layer.sizes[K] = 1;
  } else {
    layer.type = DataflowLayerType::grouped_conv;
    layer.sizes[G] = conv.groups;
  }
  return layer;
}

}  // namespace

DataflowLayer dataflow_layer(const NetworkLayer& layer) {
  refuse_dilation(layer);
  const auto* conv = std::get_if<ConvShape>(&layer.work);
  DataflowLayer own =
      conv != nullptr ? without_unused_input(convolution_layer(*conv)) : product_layer(std::get<GemmSize>(layer.work));
  own.name = layer.name;
  check_layer(own, layer.name, 0);
  return own;
}

}  // namespace foretoken
