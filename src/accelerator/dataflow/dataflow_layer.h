// A layer as MAESTRO's mapping files describe it: dimensions by letter, strides, and which tensor follows which
// dimension.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace foretoken {

// The letters of MAESTRO. Y and X count rows and columns of the input, padding included; K is the output channel of a
// convolution and the reduction of a GEMM.
enum class LayerDim : uint8_t { B, G, M, K, N, C, R, S, Y, X };

inline constexpr size_t layer_dim_count = 10;
inline constexpr std::array<LayerDim, layer_dim_count> all_layer_dims{
    LayerDim::B, LayerDim::G, LayerDim::M, LayerDim::K, LayerDim::N,
    LayerDim::C, LayerDim::R, LayerDim::S, LayerDim::Y, LayerDim::X};

inline size_t index_of(LayerDim dim) {
  return static_cast<size_t>(dim);
}

std::string_view layer_dim_name(LayerDim dim);
std::optional<LayerDim> layer_dim_named(std::string_view name);

// The filter dimension that slides along rows (Y: R) or columns (X: S) of the input; nothing for any other dimension.
std::optional<LayerDim> window_of(LayerDim dim);

// One number per dimension.
template <class Number>
struct PerDim {
  std::array<Number, layer_dim_count> values{};

  Number& operator[](LayerDim dim) { return values[index_of(dim)]; }
  const Number& operator[](LayerDim dim) const { return values[index_of(dim)]; }
  auto operator<=>(const PerDim&) const = default;
};

using DimSizes = PerDim<int64_t>;  // 0: the layer has no such dimension

enum class DataflowLayerType : uint8_t {
  conv,
  depthwise_conv,
  grouped_conv,
  transposed_conv,
  fully_connected,
  gemm,
  bmm
};

std::string_view layer_type_name(DataflowLayerType type);  // as files write it: CONV, DSCONV, ...
std::optional<DataflowLayerType> layer_type_named(std::string_view name);
std::vector<std::string> layer_type_names();

struct DataflowLayer {
  std::string name;
  DataflowLayerType type = DataflowLayerType::conv;
  DimSizes sizes;
  int64_t stride_y = 1;
  int64_t stride_x = 1;

  int64_t stride(LayerDim dim) const;  // 1 for dimensions other than Y and X
};

// The dimensions each tensor is indexed by, in the order in which a later one decides (of two spatial maps in a
// cluster).
struct DataflowTensors {
  std::vector<LayerDim> input;
  std::vector<LayerDim> filter;
  std::vector<LayerDim> output;  // Y and X stand for the output rows and columns that belong to them
};

DataflowTensors tensors_of(const DataflowLayer& layer);

// Whole windows that fit along `rows` of input.
int64_t output_rows(int64_t rows, int64_t window, int64_t stride);

// A GEMM written as the 1x1 convolution whose rows are its M, so that dataflows for convolutions apply to it; a
// depthwise convolution with its one filter per channel as K; any other layer as it is.
DataflowLayer as_convolution(const DataflowLayer& layer);

// The layer without the rows and columns of the input that no window covers: left over at the end, or skipped by a
// stride wider than the window.
DataflowLayer without_unused_input(const DataflowLayer& layer);

// InputError (about `source`, `line`) for a layer that lacks a dimension of its type, has one it does not know, or is
// larger than counts can hold.
void check_layer(const DataflowLayer& layer, const std::string& source, int line);

}  // namespace foretoken
