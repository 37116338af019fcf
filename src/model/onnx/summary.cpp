#include "model/onnx/summary.h"

#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>

#include "model/onnx/node_view.h"
#include "model/onnx/operators/list.h"
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

void count_parameters(const OnnxGraph& graph, OnnxSummary& summary) {
  std::set<int64_t> stored;
  for (const OnnxNode& node : graph.nodes) {
    if (node.is_folded || !graph.is_counted(node)) continue;
    for (const int64_t input : node.inputs) {
      if (input < 0 || !is_parameter(graph.tensor(input))) continue;
      const int64_t origin = stored_tensor(graph, input);
      if (!stored.insert(origin).second) continue;
      summary.parameters += static_cast<double>(graph.tensor(origin).elements());
      summary.weights += Bytes(graph.tensor(origin).bytes());
    }
  }
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

// Tensors live from the node that makes them to the last that reads them; inputs and outputs all the time. Views live
// in the memory of what they look at. Constants are weights, and counted there.
void find_peak(const OnnxGraph& graph, OnnxSummary& summary) {
  const size_t nodes = graph.nodes.size();
  const auto memory_of = [&](int64_t tensor) {
    const int64_t whole = graph.tensor(tensor).same_storage;
    return static_cast<size_t>(whole >= 0 ? whole : tensor);
  };
  std::vector<size_t> first(graph.tensors.size(), nodes), last(graph.tensors.size(), 0);
  const auto use = [&](int64_t tensor, size_t at) {
    if (tensor < 0) return;
    const size_t memory = memory_of(tensor);
    first[memory] = std::min(first[memory], at);
    last[memory] = std::max(last[memory], at);
  };
  for (size_t i = 0; i < nodes; ++i) {
    if (!graph.is_counted(graph.nodes[i])) continue;
    for (const int64_t input : graph.nodes[i].inputs) use(input, i);
    for (const int64_t output : graph.nodes[i].outputs) use(output, i);
  }
  for (const int64_t input : graph.inputs) {
    use(input, 0);
    if (nodes > 0) use(input, nodes - 1);
  }
  for (const int64_t output : graph.outputs) {
    if (nodes > 0) use(output, nodes - 1);
  }
  std::vector<double> starts(nodes + 1, 0), ends(nodes + 1, 0);
  for (size_t i = 0; i < graph.tensors.size(); ++i) {
    if (first[i] >= nodes || graph.tensors[i].is_constant) continue;
    starts[first[i]] += graph.tensors[i].bytes();
    ends[last[i]] += graph.tensors[i].bytes();
  }
  double live = 0;
  for (size_t i = 0; i < nodes; ++i) {
    live += starts[i];
    if (live > summary.peak_activations.value()) {
      summary.peak_activations = Bytes(live);
      summary.peak_node = graph.nodes[i].name;
    }
    live -= ends[i];
  }
}

}  // namespace

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
  count_parameters(graph, summary);
  find_peak(graph, summary);
  return summary;
}

}  // namespace foretoken
