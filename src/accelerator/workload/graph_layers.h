// The multiplications of a network's graph as layers for an array.
#pragma once

#include <vector>

#include "accelerator/workload/network_layer.h"
#include "model/onnx/graph.h"
#include "model/step.h"

namespace foretoken {

// In the order of the graph, one for each convolution and product; fused attention is its two products, all of
// their queries by all of their keys. Nodes that
// multiply nothing are left out. InputError where the graph multiplies nothing at all.
std::vector<NetworkLayer> graph_layers(const OnnxGraph& graph);

// Everything that its nodes do, with those that multiply nothing.
std::vector<Operator> graph_operators(const OnnxGraph& graph);

}  // namespace foretoken
