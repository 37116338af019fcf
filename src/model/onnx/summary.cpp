#include "model/onnx/summary.h"

#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>

#include "model/onnx/activation_peak.h"
#include "model/onnx/node_view.h"
#include "model/onnx/onnx_operator.h"
#include "model/onnx/work.h"

namespace foretoken {
namespace {

// Where a constant's numbers come from, through nodes that leave them as they are: a weight that is shared, or stored
// the other way round, is counted once.
int64_t stored_tensor(const OnnxGraph& graph, int64_t tensor) {
  static const std::set<std::string_view> unchanged = {"Identity", "Transpose", "Cast",    "DequantizeLinear",
                                                       "Reshape",  "Squeeze",   "Flatten", "Unsqueeze"};
  for (;;) {
    const OnnxTensor& own = graph.tensor(tensor);
    if (own.producer < 0) return tensor;
    const OnnxNode& node = graph.nodes[static_cast<size_t>(own.producer)];
    if (!unchanged.contains(node.operation) || node.inputs.empty() || node.inputs[0] < 0) return tensor;
    tensor = node.inputs[0];
  }
}

// Indices and shapes are whole numbers of four bytes and more; settings are single numbers.
bool is_parameter(const OnnxTensor& tensor) {
  return tensor.is_constant && tensor.elements() > 1 && onnx_dtype(tensor.type).has_value();
}

void add_operator(std::map<std::string, OnnxOperatorSummary>& operators, const OnnxNode& node, const Work& work) {
  const std::string name = operation_text(node);
  OnnxOperatorSummary& own = operators[name];
  own.operation = name;
  own.is_known = find_onnx_operator(node) != nullptr;
  ++own.nodes;
  own.flops += work.flops;
  own.bytes += work.bytes();
}

}  // namespace

OnnxParameters graph_parameters(const OnnxGraph& graph) {
  OnnxParameters parameters;
  std::set<int64_t> stored;
  for (const OnnxNode& node : graph.nodes) {
    if (node.is_folded || !graph.is_counted(node)) continue;
    for (const int64_t input : node.inputs) {
      if (input < 0 || !is_parameter(graph.tensor(input))) continue;
      const int64_t origin = stored_tensor(graph, input);
      if (!stored.insert(origin).second) continue;
      parameters.count += static_cast<double>(graph.tensor(origin).elements());
      parameters.bytes += Bytes(graph.tensor(origin).bytes());
    }
  }
  return parameters;
}

OnnxSummary summarize(const OnnxGraph& graph) {
  OnnxSummary summary;
  std::map<std::string, OnnxOperatorSummary> operators;
  std::set<std::string> unknown;
  for (const OnnxNode& node : graph.nodes) {
    if (node.control == OnnxControl::begin) continue;
    ++summary.nodes;
    if (node.is_folded) ++summary.folded;
    if (node.control == OnnxControl::end) {
      summary.control_flow.push_back(fmt::format("{} {}", operation_text(node), node.name));
    }
    if (find_onnx_operator(node) == nullptr) unknown.insert(operation_text(node));
    if (node.is_folded || !graph.is_counted(node)) continue;
    const Work work = onnx_work(graph, node);
    summary.flops += work.flops;
    summary.bytes += work.bytes();
    add_operator(operators, node, work);
  }
  for (auto& [name, own] : operators) summary.operators.push_back(std::move(own));
  std::stable_sort(summary.operators.begin(), summary.operators.end(),
                   [](const OnnxOperatorSummary& a, const OnnxOperatorSummary& b) {
                     return a.flops != b.flops ? a.flops > b.flops : a.bytes > b.bytes;
                   });
  summary.unknown.assign(unknown.begin(), unknown.end());
  for (const OnnxTensor& tensor : graph.tensors) {
    if (tensor.origin == OnnxShapeOrigin::assumed) ++summary.assumed_shapes;
    if (tensor.origin == OnnxShapeOrigin::bounded) ++summary.bounded_shapes;
  }
  const OnnxParameters parameters = graph_parameters(graph);
  summary.parameters = parameters.count;
  summary.weights = parameters.bytes;
  const ActivationPeak peak = activation_peak(graph);
  summary.peak_activations = peak.bytes;
  if (peak.node >= 0) summary.peak_node = graph.nodes[static_cast<size_t>(peak.node)].name;
  return summary;
}

}  // namespace foretoken
