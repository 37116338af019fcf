// What was measured on Eyeriss, by network.
#pragma once

#include <string>
#include <vector>

#include "accelerator/row_stationary/published_layers.h"

namespace foretoken {

inline std::vector<PublishedConvLayer> eyeriss_layers(const std::string& network) {
  std::vector<PublishedConvLayer> rows =
      read_published_conv_layers(FORETOKEN_SOURCE_DIR "/data/accelerators/published/eyeriss_jssc2017.json").layers;
  std::erase_if(rows, [&](const PublishedConvLayer& row) { return row.network != network; });
  return rows;
}

}  // namespace foretoken
