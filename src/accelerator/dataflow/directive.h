// MAESTRO's data-centric directives (Kwon et al., MICRO 2019): which part of each dimension a cluster of processing
// elements works on, in time (TemporalMap) or side by side (SpatialMap), and how elements form clusters (Cluster).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "accelerator/dataflow/dataflow_layer.h"

namespace foretoken {

// A size that may follow the layer: constant + sum of times[d] x size of d. `Sz(R)`, `8+Sz(S)-1`, `64`.
struct SizeExpression {
  int64_t constant = 0;
  PerDim<int> times;

  int64_t value(const DimSizes& sizes) const;
  std::string text() const;
  bool operator==(const SizeExpression&) const = default;
};

// Where MAESTRO's own counts and what hardware so directed would do part; docs/accelerators/dataflow.md lists the
// places.
enum class DataflowReading : uint8_t { maestro, physical };

enum class DirectiveKind : uint8_t { temporal_map, spatial_map, cluster };

struct Directive {
  DirectiveKind kind = DirectiveKind::temporal_map;
  SizeExpression size;    // elements mapped to one unit; units per cluster
  SizeExpression offset;  // from one step or unit to the next; unused by Cluster
  LayerDim dim = LayerDim::K;
  bool of_output = false;   // X' and Y': counted in output columns and rows
  bool is_logical = false;  // Cluster(n, L) rather than (n, P): kept for the writer, costs the same
  int line = 0;

  std::string text() const;  // as files write it, without the semicolon
};

// A directive with its numbers: what one step (or one unit) holds, and how far the next one lies.
struct MapDirective {
  LayerDim dim = LayerDim::K;
  bool is_spatial = false;
  int64_t size = 1;
  int64_t offset = 1;
};

}  // namespace foretoken
