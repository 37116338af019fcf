// Layers measured on a row-stationary chip and printed in a paper: data/accelerators/published/.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "accelerator/conv_layer.h"
#include "base/units.h"

namespace foretoken {

struct PublishedConvLayer {
  std::string network;
  ConvLayer layer;
  Watts power;  // of the chip, without DRAM
  Seconds total;
  Seconds processing;
  int64_t active_pes = 0;
  Bytes buffer;
  Bytes dram;
};

struct PublishedConvLayers {
  std::string title;
  std::string source;
  std::vector<PublishedConvLayer> layers;  // in the order of the file

  // Of the layer's inputs; - and _ in names are the same.
  std::optional<double> zero_share(std::string_view network, std::string_view layer) const;
};

// Zeros go from layer to layer of a network as by chain_zero_shares(). InputError with file, line and path.
PublishedConvLayers parse_published_conv_layers(std::string_view text, const std::string& source);
PublishedConvLayers read_published_conv_layers(const std::filesystem::path& file);

}  // namespace foretoken
