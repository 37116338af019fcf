// A whole graph in a few numbers.
#pragma once

#include <string>
#include <vector>

#include "base/units.h"
#include "model/onnx/graph.h"

namespace foretoken {

// All nodes of one operator that have something to do.
struct OnnxOperatorSummary {
  std::string operation;  // "Conv", "com.microsoft.Gelu"
  int64_t nodes = 0;
  Flops flops;
  Bytes bytes;
  bool is_known = true;
};

// Distinct constants that nodes read, but for indices and single numbers; a weight that is shared, or also stored the
// other way round, counts once.
struct OnnxParameters {
  double count = 0;
  Bytes bytes;
};
OnnxParameters graph_parameters(const OnnxGraph& graph);

struct OnnxSummary {
  int64_t nodes = 0;      // in the file's graph, functions inlined
  int64_t folded = 0;     // whose results are known beforehand
  double parameters = 0;  // distinct constants that nodes read, but for indices and single numbers
  Bytes weights;          // of those
  Flops flops;
  Bytes bytes;             // read and written by all nodes
  Bytes peak_activations;  // the most that inputs, outputs and tensors between take at one time, in this order
  std::string peak_node;   // where that is
  std::vector<OnnxOperatorSummary> operators;      // most FLOPs first, then most bytes
  std::vector<std::string> unknown;                // operators without a rule, sorted
  std::vector<std::string> control_flow;           // nodes with a body: "Loop loop_3"
  int64_t assumed_shapes = 0, bounded_shapes = 0;  // tensors whose shape nobody could say, or only a bound
};

OnnxSummary summarize(const OnnxGraph& graph);

}  // namespace foretoken
