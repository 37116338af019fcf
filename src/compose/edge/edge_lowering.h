// A network as the kernels that a runtime runs: nodes joined as its fusion rules say, the rest one by one.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/units.h"
#include "compose/edge/fusion_rules.h"
#include "kernel/edge/edge_predictor.h"
#include "model/onnx/graph.h"
#include "model/step.h"

namespace foretoken {

struct EdgeCall {
  EdgeKernel kernel;
  int64_t count = 1;
  bool is_stand_in = false;  // of a kernel that no sweep has: an average pool as a max pool
  // Of a product or convolution, where it is not that of the kernel: a narrower format that no sweep has measured has a
  // wide interval below its fp32 time.
  Scheme scheme = Scheme::fp32;
  bool widens_weights = false;  // narrow weights that are turned into fp32 before they multiply (MatMulNBits)
};

// What runs in one go. Nodes that leave nothing to do (views, what a runtime removes) are steps without calls.
struct EdgeStep {
  std::string name;             // of an operator of a model's step; empty: nodes of a graph
  std::vector<int64_t> nodes;   // of the graph, in its order
  std::string rule;             // that joined them; empty: a node by itself
  std::vector<EdgeCall> calls;  // most often one; attention has several
  bool is_dispatched = true;    // false: removed before the network runs
  Flops flops;                  // of its nodes, by the graph's count
};

struct EdgeLowering {
  std::vector<EdgeStep> steps;     // by the place of their last nodes
  std::vector<std::string> notes;  // what a reader should know about prices
};

// Every counted node that is not folded stands in exactly one step. An operator without a kernel of its own becomes
// traffic of its bytes.
EdgeLowering lower_edge(const OnnxGraph& graph, const FusionRules& rules);

// A step of a language model, each operator by itself. Rotary embeddings, caches and look-ups are traffic of their
// bytes.
EdgeLowering lower_edge_step(std::span<const Operator> operators);

// Products and convolutions in int8, and products with int4 weights, as kernels of their own, where the sweep measured
// such; a note counts the steps in formats that it did not.
EdgeLowering with_measured_formats(EdgeLowering lowering, const EdgePredictor& predictor);

// The kernel for `factor` times as many pictures or sequences; weights stay.
EdgeKernel with_batch_times(const EdgeKernel& kernel, int64_t factor);

}  // namespace foretoken
