#include "accelerator/dataflow/dataflow_layer.h"

#include <algorithm>
#include <span>

#include <fmt/format.h>

#include "base/error.h"
#include "base/kinds.h"

namespace foretoken {
namespace {

constexpr std::array<std::string_view, layer_dim_count> dim_letters{"B", "G", "M", "K", "N", "C", "R", "S", "Y", "X"};

struct LayerTypeEntry {
  DataflowLayerType type;
  std::string_view name;
  std::vector<LayerDim> needed;
  std::vector<LayerDim> optional;
};

const std::vector<LayerTypeEntry>& layer_types() {
  using enum LayerDim;
  static const std::vector<LayerTypeEntry> entries{
      {DataflowLayerType::conv, "CONV", {K, C, R, S, Y, X}, {N}},
      {DataflowLayerType::depthwise_conv, "DSCONV", {C, R, S, Y, X}, {N, K}},
      {DataflowLayerType::grouped_conv, "NGCONV", {G, K, C, R, S, Y, X}, {N}},
      {DataflowLayerType::transposed_conv, "TRCONV", {K, C, R, S, Y, X}, {N}},
      {DataflowLayerType::fully_connected, "FC", {K, C, R, S, Y, X}, {N}},
      {DataflowLayerType::gemm, "GEMM", {M, N, K}, {}},
      {DataflowLayerType::bmm, "BMM", {B, M, N, K}, {}},
  };
  return entries;
}

const LayerTypeEntry& entry_of(DataflowLayerType type) {
  const std::vector<LayerTypeEntry>& entries = layer_types();
  const auto found = std::ranges::find(entries, type, &LayerTypeEntry::type);
  ensure(found != entries.end(), "every layer type has an entry");
  return *found;
}

bool holds_dim(std::span<const LayerDim> dims, LayerDim dim) {
  return std::ranges::find(dims, dim) != dims.end();
}

void keep_present(std::vector<LayerDim>& dims, const DimSizes& sizes) {
  std::erase_if(dims, [&](LayerDim dim) { return sizes[dim] == 0; });
}

}  // namespace

std::string_view layer_dim_name(LayerDim dim) {
  return dim_letters[index_of(dim)];
}

std::optional<LayerDim> layer_dim_named(std::string_view name) {
  for (const LayerDim dim : all_layer_dims) {
    if (layer_dim_name(dim) == name) return dim;
  }
  return std::nullopt;
}

std::optional<LayerDim> window_of(LayerDim dim) {
  if (dim == LayerDim::Y) return LayerDim::R;
  if (dim == LayerDim::X) return LayerDim::S;
  return std::nullopt;
}

std::string_view layer_type_name(DataflowLayerType type) {
  return entry_of(type).name;
}

std::optional<DataflowLayerType> layer_type_named(std::string_view name) {
  const LayerTypeEntry* const entry = find_kind(layer_types(), name);
  return entry == nullptr ? std::nullopt : std::optional(entry->type);
}

std::vector<std::string> layer_type_names() {
  return kind_names(layer_types());
}

int64_t DataflowLayer::stride(LayerDim dim) const {
  if (dim == LayerDim::Y) return stride_y;
  if (dim == LayerDim::X) return stride_x;
  return 1;
}

DataflowTensors tensors_of(const DataflowLayer& layer) {
  using enum LayerDim;
  DataflowTensors tensors;
  switch (layer.type) {
    case DataflowLayerType::conv:
    case DataflowLayerType::transposed_conv:
    case DataflowLayerType::fully_connected:
      tensors = {.input = {N, C, Y, X}, .filter = {K, C, R, S}, .output = {N, K, Y, X}};
      break;
    case DataflowLayerType::depthwise_conv:
      tensors = {.input = {N, C, Y, X}, .filter = {C, R, S}, .output = {N, C, Y, X}};
      break;
    case DataflowLayerType::grouped_conv:
      tensors = {.input = {N, G, C, Y, X}, .filter = {G, K, C, R, S}, .output = {N, G, K, Y, X}};
      break;
    case DataflowLayerType::gemm:
      tensors = {.input = {M, K}, .filter = {K, N}, .output = {M, N}};
      break;
    case DataflowLayerType::bmm:
      tensors = {.input = {B, M, K}, .filter = {B, K, N}, .output = {B, M, N}};
      break;
  }
  keep_present(tensors.input, layer.sizes);
  keep_present(tensors.output, layer.sizes);
  return tensors;
}

int64_t output_rows(int64_t rows, int64_t window, int64_t stride) {
  return rows < window ? 0 : (rows - window) / stride + 1;
}

DataflowLayer as_convolution(const DataflowLayer& layer) {
  using enum LayerDim;
  if (layer.type != DataflowLayerType::gemm && layer.type != DataflowLayerType::bmm) {
    DataflowLayer convolution = layer;
    if (layer.sizes[K] == 0) convolution.sizes[K] = 1;
    return convolution;
  }
  DataflowLayer convolution{.name = layer.name, .type = DataflowLayerType::conv};
  convolution.sizes[K] = layer.sizes[N];
  convolution.sizes[C] = layer.sizes[K];
  convolution.sizes[Y] = layer.sizes[M];
  for (const LayerDim dim : {X, R, S}) convolution.sizes[dim] = 1;
  if (layer.type == DataflowLayerType::bmm) {  // each product has its own right-hand side: groups of a convolution
    convolution.type = DataflowLayerType::grouped_conv;
    convolution.sizes[G] = layer.sizes[B];
  }
  return convolution;
}

DataflowLayer without_unused_input(const DataflowLayer& layer) {
  DataflowLayer used = layer;
  for (const LayerDim dim : {LayerDim::Y, LayerDim::X}) {
    if (layer.sizes[dim] == 0) continue;
    const int64_t window = layer.sizes[*window_of(dim)];
    const int64_t outputs = output_rows(layer.sizes[dim], window, layer.stride(dim));
    int64_t& stride = dim == LayerDim::Y ? used.stride_y : used.stride_x;
    stride = std::min(stride, window);
    used.sizes[dim] = (outputs - 1) * stride + window;
  }
  return used;
}

void check_layer(const DataflowLayer& layer, const std::string& source, int line) {
  const LayerTypeEntry& entry = entry_of(layer.type);
  const auto reject = [&](std::string value, std::string expected) {
    throw InputError({.source = source,
                      .line = line,
                      .path = fmt::format("layer {}", printable(layer.name)),
                      .value = std::move(value),
                      .expected = std::move(expected)});
  };
  double work = 1;
  for (const LayerDim dim : all_layer_dims) {
    const std::string name(layer_dim_name(dim));
    const int64_t size = layer.sizes[dim];
    if (holds_dim(entry.needed, dim) && size < 1)
      reject("no " + name, fmt::format("a {} layer to have one", entry.name));
    if (size != 0 && !holds_dim(entry.needed, dim) && !holds_dim(entry.optional, dim)) {
      reject(fmt::format("{}: {}", name, size), fmt::format("a dimension of {}", entry.name));
    }
    const std::optional<LayerDim> window = window_of(dim);
    if (window && size < layer.sizes[*window]) {
      reject(fmt::format("{}: {}", name, size),
             fmt::format("at least {}, which is {}", layer_dim_name(*window), layer.sizes[*window]));
    }
    if (size > 1) work *= static_cast<double>(size);
  }
  if (work > 1e15) reject(fmt::format("{:.3g} products of all dimensions", work), "at most 1e15");
}

}  // namespace foretoken
