// What the nodes of a graph do: FLOPs and bytes of each, and the kernels that the rest of the program predicts.
#pragma once

#include <vector>

#include "model/onnx/graph.h"
#include "model/step.h"
#include "model/work.h"

namespace foretoken {

// Counted from the tensors themselves: each read once, outputs written once, of a table only the rows that are looked
// up. Zero for views, for what is folded and for what stands in a branch that is not counted. An unknown operator reads
// and writes its tensors. In a loop as often as it runs.
Work onnx_work(const OnnxGraph& graph, const OnnxNode& node);

// Its bytes alone, of one run.
Work onnx_traffic(const OnnxGraph& graph, const OnnxNode& node);

// The same as calls of kernel families, most often one; none where there is nothing to do. Windows whose sides differ
// become ones of the same FLOPs with equal sides; what has no family is an element-wise kernel of the same traffic.
// Runs of a loop are counts.
std::vector<Operator> onnx_operators(const OnnxGraph& graph, const OnnxNode& node);
// Of all nodes, in the order of the graph.
std::vector<Operator> onnx_operators(const OnnxGraph& graph);

Flops region_flops(const OnnxGraph& graph, int64_t region);

}  // namespace foretoken
