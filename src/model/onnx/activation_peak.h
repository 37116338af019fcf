// The most memory that a graph's tensors take at one time.
#pragma once

#include <span>

#include "base/units.h"
#include "model/onnx/graph.h"

namespace foretoken {

struct ActivationPeak {
  Bytes bytes;        // of inputs, outputs and tensors between
  int64_t node = -1;  // where that is; -1: nothing lives
};

// Tensors live from the node that makes them to the last that reads them, in the order of the graph; inputs and outputs
// all the time. Views live in the memory of what they look at; constants are weights, and no activations.
// `turns`: for each node the one in whose turn it runs, itself or a later one that it is joined with. What is made and
// read in one turn takes no memory. Empty: every node in its own.
ActivationPeak activation_peak(const OnnxGraph& graph, std::span<const int64_t> turns = {});

}  // namespace foretoken
