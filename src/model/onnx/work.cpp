#include "model/onnx/work.h"

#include <algorithm>

#include "model/onnx/onnx_operator.h"

namespace foretoken {

Work onnx_traffic(const OnnxGraph& graph, const OnnxNode& node) {
  const OnnxOperator* known = find_onnx_operator(node);
  const OnnxCost cost = known == nullptr ? OnnxCost::traffic : known->cost;
  Work work{.math = DType::fp32};
  if (node.is_folded || !graph.is_counted(node) || cost == OnnxCost::none || cost == OnnxCost::control) return work;
  for (const int64_t output : node.outputs) {
    if (output >= 0) work.written += Bytes(graph.tensor(output).bytes());
  }
  // What only moves elements reads no more of an input than it writes: the rest is not looked at.
  const bool moves = known != nullptr && (cost == OnnxCost::traffic || cost == OnnxCost::gather);
  std::vector<int64_t> read;
  for (const int64_t input : node.inputs) {
    if (input < 0 || std::find(read.begin(), read.end(), input) != read.end()) continue;
    read.push_back(input);
    const OnnxTensor& tensor = graph.tensor(input);
    const double bytes = moves ? std::min(tensor.bytes(), work.written.value()) : tensor.bytes();
    (tensor.is_constant ? work.weights_read : work.activations_read) += Bytes(bytes);
  }
  return work;
}

Work onnx_work(const OnnxGraph& graph, const OnnxNode& node) {
  Work work = onnx_traffic(graph, node);
  const auto runs = static_cast<double>(graph.runs(node));
  for (Bytes* bytes : {&work.weights_read, &work.activations_read, &work.written}) *bytes = *bytes * runs;
  bool first = true;
  for (const Operator& own : onnx_operators(graph, node)) {
    const Work part = count_work(own.shape);
    if (first) work.math = part.math;
    first = false;
    work.flops += part.flops * static_cast<double>(own.count);
  }
  return work;
}

Flops region_flops(const OnnxGraph& graph, int64_t region) {
  const OnnxRegion& wanted = graph.regions[static_cast<size_t>(region)];
  Flops sum;
  for (int64_t i = wanted.begin; i < wanted.end; ++i) {
    const OnnxNode& node = graph.nodes[static_cast<size_t>(i)];
    bool inside = false;
    for (int64_t own = node.region; own >= 0 && !inside; own = graph.regions[static_cast<size_t>(own)].parent) {
      inside = own == region;
    }
    if (inside) sum += onnx_work(graph, node).flops;
  }
  return sum;
}

}  // namespace foretoken
