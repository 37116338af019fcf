// One node while its outputs are being told, as the rules of operators are given it.
#pragma once

#include <optional>
#include <string>

#include "model/onnx/graph.h"
#include "model/onnx/node_view.h"

namespace foretoken {

// What a rule sees of its node, and where it puts the answer. A rule that cannot tell an output's shape leaves it, and
// the exporter's word or an assumption takes its place.
class NodeInference : public OnnxNodeView {
 public:
  NodeInference(OnnxGraph& graph, size_t node) : OnnxNodeView(graph, graph.nodes[node]), graph_(graph) {}

  void output(size_t output, OnnxType type, OnnxDims dims, OnnxShapeOrigin origin = OnnxShapeOrigin::inferred);
  // Values of an output whose shape is set; ignored where there are not as many as elements, or too many to keep.
  void set_values(size_t output, OnnxValues values);
  // The output is the input's memory under another shape.
  void view(size_t output, size_t input);
  void constant(size_t output);    // known beforehand even though an input is not: what depends on its shape alone
  void leave_out(int64_t region);  // a branch that is not taken
  // How often a body runs; nothing: that depends on data.
  void set_runs(int64_t region, std::optional<int64_t> runs);

  void note(const std::string& what);

 private:
  OnnxTensor& target(size_t output) { return graph_.tensors[static_cast<size_t>(node().outputs[output])]; }

  OnnxGraph& graph_;
};

// numpy's rule: sizes are equal or 1, counted from the back. Nothing where they are neither.
std::optional<OnnxDims> broadcast(const OnnxDims& a, const OnnxDims& b);

}  // namespace foretoken
