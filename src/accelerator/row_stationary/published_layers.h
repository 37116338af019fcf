// Layers measured on a row-stationary chip and printed in a paper: data/accelerators/published/.
#pragma once

#include <filesystem>
#include <string>
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

  std::vector<PublishedConvLayer> of_network(const std::string& network) const;
};

// The zeros a layer writes are those the next one of its network reads (the last one: as it reads itself); the image
// that enters a network's first layer is not compressed. InputError with file, line and path.
PublishedConvLayers read_published_conv_layers(const std::filesystem::path& file);

}  // namespace foretoken
