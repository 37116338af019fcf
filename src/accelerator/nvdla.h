// NVDLA, NVIDIA's open accelerator, as its vendor sizes it: each layer takes the longer of its MACs and its DRAM
// traffic.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "accelerator/conv_layer.h"
#include "base/units.h"

namespace foretoken {

struct NvdlaConfiguration {
  int64_t macs = 0;  // int8, a cycle
  Bytes convolution_buffer;
  BytesPerSecond dram;
  Hertz clock;
};

struct NvdlaLayer {
  ConvLayer convolution;
  bool adds_shortcut = false;  // reads a second feature map of the output's size and adds it
  int64_t repeats = 1;         // how often the network holds this layer
};

struct NvdlaTime {
  Seconds mac, dram;
  double counted_macs = 0;  // with channels and filters that fill up a multiple
  double input_reads = 1;   // how often all inputs cross from DRAM
  Bytes traffic;
  Seconds total() const { return mac > dram ? mac : dram; }
};

// int8. Channels and filters count in multiples of 16. A quarter of the convolution buffer holds weights (half, and
// that half twice): inputs are read once for each such share of the layer's weights. Weights, outputs and shortcuts
// cross once.
NvdlaTime nvdla_layer_time(const NvdlaConfiguration& configuration, const NvdlaLayer& layer);

// Layers run one after the other.
Seconds nvdla_network_time(const NvdlaConfiguration& configuration, std::span<const NvdlaLayer> layers);

struct PublishedNvdlaRow {
  NvdlaConfiguration configuration;
  double frames_per_second = 0;
};

struct PublishedNvdla {
  std::string source;
  std::vector<NvdlaLayer> layers;  // of the network that all rows ran
  std::vector<PublishedNvdlaRow> rows;
};

// InputError with file, line and path.
PublishedNvdla parse_published_nvdla(std::string_view text, const std::string& source);
PublishedNvdla read_published_nvdla(const std::filesystem::path& file);

}  // namespace foretoken
