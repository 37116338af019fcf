#include "model/onnx/operators/folding.h"
#include "model/onnx/operators/rules.h"

namespace foretoken::onnx_rules {
namespace {

OnnxDims reduced(const OnnxDims& dims, const std::vector<bool>& leaves, bool keep) {
  OnnxDims result;
  for (size_t i = 0; i < dims.size(); ++i) {
    if (!leaves[i]) result.push_back(dims[i]);
    if (leaves[i] && keep) result.push_back(1);
  }
  return result;
}

}  // namespace

void reduce(NodeInference& node) {
  const OnnxDims& dims = node.dims(0);
  const bool keep = node.attribute("keepdims", 1) != 0;
  const OnnxNodeView::List axes = node.list("axes", 1);
  if (axes.given && !axes.values) return;
  const bool none = !axes.given || axes.values->empty();
  if (none && node.attribute("noop_with_empty_axes", 0) != 0) {
    node.output(0, node.type(0), dims);
    return;
  }
  std::vector<bool> leaves(dims.size(), none);
  for (size_t i = 0; !none && i < axes.values->size(); ++i) leaves[node.axis((*axes.values)[i], dims.size())] = true;
  node.output(0, node.type(0), reduced(dims, leaves, keep));

  // Products of sizes are what shapes are made of.
  const std::optional<std::vector<int64_t>> known = node.integers(0);
  const std::string& operation = node.node().operation;
  if (!known || known->empty() || dims.size() > 1 || (operation != "ReduceProd" && operation != "ReduceSum")) return;
  auto result = static_cast<uint64_t>((*known)[0]);
  for (size_t i = 1; i < known->size(); ++i) {
    const auto next = static_cast<uint64_t>((*known)[i]);
    result = operation == "ReduceProd" ? result * next : result + next;
  }
  node.set_values(0, OnnxValues::of({static_cast<int64_t>(result)}));
}

void arg_reduce(NodeInference& node) {
  const OnnxDims& dims = node.dims(0);
  std::vector<bool> leaves(dims.size(), false);
  leaves[node.axis(node.attribute("axis", 0), dims.size())] = true;
  node.output(0, OnnxType::int64, reduced(dims, leaves, node.attribute("keepdims", 1) != 0));
}

}  // namespace foretoken::onnx_rules
