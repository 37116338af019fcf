#include "model/onnx/node_inference.h"

#include <algorithm>

namespace foretoken {

std::optional<OnnxDims> broadcast(const OnnxDims& a, const OnnxDims& b) {
  const OnnxDims& longer = a.size() >= b.size() ? a : b;
  const OnnxDims& shorter = a.size() >= b.size() ? b : a;
  OnnxDims result = longer;
  const size_t offset = longer.size() - shorter.size();
  for (size_t i = 0; i < shorter.size(); ++i) {
    int64_t& size = result[offset + i];
    if (size == shorter[i] || shorter[i] == 1) continue;
    if (size != 1) return std::nullopt;
    size = shorter[i];
  }
  return result;
}

void NodeInference::output(size_t output, OnnxType type, OnnxDims dims, OnnxShapeOrigin origin) {
  if (!wants(output)) return;
  if (!onnx_elements(dims)) {
    fail(fmt::format("an output of {}", dims_text(dims)), "sizes from 0 and at most 2^46 elements");
  }
  OnnxTensor& tensor = target(output);
  tensor.type = type == OnnxType::undefined ? tensor.type : type;
  tensor.dims = std::move(dims);
  tensor.origin = origin;
}

void NodeInference::set_values(size_t output, OnnxValues values) {
  if (!wants(output)) return;
  OnnxTensor& tensor = target(output);
  const int64_t elements = tensor.elements();
  const auto found = static_cast<int64_t>(values.integers.size() + values.reals.size());
  if (elements > most_onnx_values || found != elements) return;
  tensor.values = std::move(values);
}

void NodeInference::view(size_t output, size_t input) {
  if (!wants(output) || !has(input)) return;
  const int64_t origin = node().inputs[input];
  const int64_t before = graph_.tensor(origin).same_storage;
  target(output).same_storage = before >= 0 ? before : origin;
}

void NodeInference::constant(size_t output) {
  if (wants(output)) target(output).is_constant = true;
}

void NodeInference::leave_out(int64_t region) {
  graph_.regions[static_cast<size_t>(region)].is_counted = false;
}

void NodeInference::set_runs(int64_t region, std::optional<int64_t> runs) {
  OnnxRegion& own = graph_.regions[static_cast<size_t>(region)];
  own.runs = runs.value_or(1);
  own.runs_are_known = runs.has_value();
}

void NodeInference::note(const std::string& what) {
  if (graph_.notes.size() < most_notes) {
    graph_.notes.push_back(fmt::format("{} {}: {}", operation_text(node()), printable(node().name), what));
  }
}

}  // namespace foretoken
