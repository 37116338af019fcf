// Cluster analysis: the directives of a dataflow as levels, the array of clusters first, elements in a cluster last.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "accelerator/dataflow/dataflow_layer.h"
#include "accelerator/dataflow/directive.h"

namespace foretoken {

// One level: what it is given (`sizes`) is cut up by `maps`, outermost loop first, and handed to `units` clusters or
// elements of the level below.
struct ClusterLevel {
  std::vector<MapDirective> maps;  // every dimension of the layer, and at least one spatial
  DimSizes sizes;
  int64_t units = 1;
  int64_t edge_units = 1;  // at work in the last round of the first spatial map, which may leave some idle

  const MapDirective& first_spatial_map() const;
  const MapDirective& map_of(LayerDim dim) const;  // the outermost one
};

// The same level when it is given a tile of other sizes.
ClusterLevel resized(const ClusterLevel& level, const DimSizes& sizes);

// Completes the directives as MAESTRO does: a level takes over from the level above the dimensions it does not name
// (outermost, in reverse order), holds the others whole, and steps along strided rows and columns by whole outputs.
// InputError (about `source`, with the line) for directives that do not fit the layer or `num_pes` elements.
std::vector<ClusterLevel> cluster_levels(const DataflowLayer& layer, std::span<const Directive> dataflow,
                                         int64_t num_pes, const std::string& source);

}  // namespace foretoken
