// A convolution as the chip's authors write one: a batch of feature maps, square stride, zero padding on all sides.
#pragma once

#include <cstdint>
#include <string>

namespace foretoken {

struct ConvLayer {
  std::string name;
  int64_t batch = 1;
  int64_t channels = 1;
  int64_t filters = 1;
  int64_t height = 1;  // of the input, without padding
  int64_t width = 1;
  int64_t filter_rows = 1;
  int64_t filter_columns = 1;
  int64_t stride = 1;
  int64_t padding = 0;
  int64_t groups = 1;  // = channels: depthwise
  double ifmap_zero_share = 0;
  double ofmap_zero_share = 0;   // after the activation, as written to DRAM
  bool ifmap_compressed = true;  // false for the image that enters the first layer

  int64_t padded_height() const { return height + 2 * padding; }
  int64_t padded_width() const { return width + 2 * padding; }
  int64_t output_rows() const { return (padded_height() - filter_rows) / stride + 1; }
  int64_t output_columns() const { return (padded_width() - filter_columns) / stride + 1; }
  int64_t channels_per_group() const { return channels / groups; }
  int64_t filters_per_group() const { return filters / groups; }
  double macs() const;
};

// InputError when a size is below one or above what can be counted, the filter does not fit the padded input, groups do
// not divide channels and filters, or a zero share lies outside 0 to 1. `source` names the layer's origin.
void check_conv_layer(const ConvLayer& layer, const std::string& source);

}  // namespace foretoken
