// Shapes and constants along a graph. Each operator has one rule (operators/list.cpp) that is given a
// NodeInference.
#pragma once

#include "model/onnx/graph.h"

namespace foretoken {

// Gives every tensor of a linked graph its type and shape, folds what is known beforehand, and chooses the branch of
// every If that is counted. InputError where sizes contradict each other.
void infer_shapes(OnnxGraph& graph);

}  // namespace foretoken
