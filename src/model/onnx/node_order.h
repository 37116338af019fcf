// The order in which the nodes of a graph can run.
#pragma once

#include <string>

#include "model/onnx/graph.h"

namespace foretoken {

// Sorts nodes so that each stands after those whose outputs it reads, otherwise in the order they have; a body stands
// between the nodes that begin and end it. Sets the producer of every tensor. InputError names a node of a cycle, or a
// tensor that two nodes make.
void put_in_order(OnnxGraph& graph, const std::string& source);

}  // namespace foretoken
