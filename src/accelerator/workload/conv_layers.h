// Layers of our lists as a chip for convolutions takes them.
#pragma once

#include <span>

#include "accelerator/conv_layer.h"
#include "accelerator/workload/network_layer.h"

namespace foretoken {

// A product is a 1x1 convolution whose rows are the rows of a plane one column wide; a batch of products its groups.
// InputError for dilation.
ConvLayer conv_layer(const NetworkLayer& layer);

// Of layers that follow each other: the zeros that one writes are those that the next one reads (the last one: as it
// reads itself), and the image that enters the first is not compressed.
void chain_zero_shares(std::span<ConvLayer> layers);

}  // namespace foretoken
