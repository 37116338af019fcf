// A layer of a network as its file gives it: a matrix product, or a convolution with its padding.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "accelerator/problem.h"
#include "base/json.h"
#include "model/shapes.h"

namespace foretoken {

struct NetworkLayer {
  std::string name;
  std::variant<GemmSize, ConvShape> work;
  int64_t count = 1;           // how often the network holds it
  bool from_previous = false;  // its only input is what the layer before it puts out, unchanged but for an activation
};

// Our JSON: {"name", "source", "layers": [{"name", "count", "from_previous", and "conv": {...} or "gemm": {...}}]}.
std::vector<NetworkLayer> read_network_layers(const JsonView& document);

// `batch` times the input: images of a convolution, rows of a product. The products of a batch have both operands to
// themselves, so there are more of them instead. InputError for a layer of more than 2^30 of either.
NetworkLayer with_batch(NetworkLayer layer, int64_t batch);

Problem layer_problem(const NetworkLayer& layer);

struct ConvOutput {
  int64_t height = 1;
  int64_t width = 1;
};
ConvOutput conv_output(const ConvShape& shape);

// For models that know no holes between the places of a kernel: InputError that names the layer.
void refuse_dilation(const NetworkLayer& layer);

}  // namespace foretoken
