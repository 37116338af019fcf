#include "model/onnx/inference.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/error.h"
#include "model/onnx/onnx_operator.h"
#include "model/onnx/work.h"

namespace foretoken {
namespace {

// Notes that differ only in the node would drown the others.
constexpr size_t most_notes = 200;

// All inputs known beforehand, and the operator is known to give the same every time.
bool follows_from_constants(const OnnxGraph& graph, const OnnxNode& node) {
  if (node.control != OnnxControl::none || find_onnx_operator(node) == nullptr) return false;
  if (node.operation.starts_with("Random")) return false;
  for (const int64_t input : node.inputs) {
    if (input >= 0 && !graph.tensor(input).is_constant) return false;
  }
  return true;
}

// What no rule could tell: the exporter's word, or the shape of the first input.
void settle_outputs(OnnxGraph& graph, const OnnxNode& node, NodeInference& inference) {
  const OnnxTensor* first = nullptr;
  for (const int64_t input : node.inputs) {
    if (input >= 0 && first == nullptr) first = &graph.tensor(input);
  }
  for (const int64_t output : node.outputs) {
    if (output < 0) continue;
    OnnxTensor& tensor = graph.tensors[static_cast<size_t>(output)];
    if (tensor.origin == OnnxShapeOrigin::unknown) {
      tensor.type = tensor.type == OnnxType::undefined && first != nullptr ? first->type : tensor.type;
      tensor.dims = first == nullptr ? OnnxDims{} : first->dims;
      tensor.origin = OnnxShapeOrigin::assumed;
      inference.note(fmt::format("the shape of its output {} depends on data or is not known: taken to be {}",
                                 printable(tensor.name), dims_text(tensor.dims)));
    }
    if (tensor.type == OnnxType::undefined && first != nullptr) tensor.type = first->type;
  }
}

// A rule whose inputs are bounds or assumptions may find sizes that contradict each other without any fault of the
// file; and what it does find is no better than they are.
void infer_doubtful(OnnxGraph& graph, const OnnxNode& node, const OnnxOperator& known, NodeInference& inference,
                    OnnxShapeOrigin doubt) {
  try {
    known.infer(inference);
  } catch (const InputError&) {
    inference.note("sizes that are only assumed do not fit together here");
  }
  for (const int64_t output : node.outputs) {
    if (output < 0) continue;
    OnnxTensor& tensor = graph.tensors[static_cast<size_t>(output)];
    if (tensor.origin == OnnxShapeOrigin::inferred && !tensor.values) tensor.origin = doubt;
  }
}

void infer_node(OnnxGraph& graph, size_t index) {
  OnnxNode& node = graph.nodes[index];
  NodeInference inference(graph, index);
  const bool constant = follows_from_constants(graph, node);
  OnnxShapeOrigin doubt = OnnxShapeOrigin::inferred;
  for (const int64_t input : node.inputs) {
    if (input >= 0) doubt = std::max(doubt, graph.tensor(input).origin);
  }
  const OnnxOperator* known = find_onnx_operator(node);
  if (known != nullptr && doubt < OnnxShapeOrigin::bounded) {
    known->infer(inference);
  } else if (known != nullptr) {
    infer_doubtful(graph, node, *known, inference, doubt);
  }
  settle_outputs(graph, node, inference);
  bool all_known = node.control == OnnxControl::none && !node.outputs.empty();
  for (const int64_t output : node.outputs) {
    if (output < 0) continue;
    OnnxTensor& tensor = graph.tensors[static_cast<size_t>(output)];
    tensor.is_constant = tensor.is_constant || constant || tensor.values.has_value();
    all_known = all_known && tensor.is_constant;
  }
  node.is_folded = all_known;
}

// A branch whose sizes contradict each other cannot be the one that is taken, as long as its If has another: exporters
// write one graph for several input sizes and choose by a flag. False where there is none.
bool leave_out_branch(OnnxGraph& graph, const OnnxNode& failed, const InputError& error) {
  for (int64_t at = failed.region; at >= 0; at = graph.regions[static_cast<size_t>(at)].parent) {
    OnnxRegion& region = graph.regions[static_cast<size_t>(at)];
    const auto is_other = [&](const OnnxRegion& other) {
      return &other != &region && other.begin == region.begin && other.is_counted;
    };
    if (std::none_of(graph.regions.begin(), graph.regions.end(), is_other)) continue;
    region.is_counted = false;
    const OnnxNode& node = graph.nodes[static_cast<size_t>(region.end)];
    if (graph.notes.size() < most_notes) {
      graph.notes.push_back(fmt::format("{} {}: its {} does not fit the sizes, so it is left out: {}",
                                        operation_text(node), printable(node.name), region.branch,
                                        error.problem().value));
    }
    return true;
  }
  return false;
}

// Of the two branches of an If whose condition is not known beforehand, the one with more to do.
void choose_branches(OnnxGraph& graph) {
  for (size_t first = 0; first < graph.regions.size(); ++first) {
    for (size_t second = first + 1; second < graph.regions.size(); ++second) {
      OnnxRegion& a = graph.regions[first];
      OnnxRegion& b = graph.regions[second];
      if (a.begin != b.begin || !a.is_counted || !b.is_counted) continue;
      const double work_a = region_flops(graph, static_cast<int64_t>(first)).value();
      const double work_b = region_flops(graph, static_cast<int64_t>(second)).value();
      (work_a >= work_b ? b : a).is_counted = false;
    }
  }
}

void describe_regions(OnnxGraph& graph) {
  for (size_t i = 0; i < graph.regions.size(); ++i) {
    const OnnxRegion& region = graph.regions[i];
    const OnnxNode& node = graph.nodes[static_cast<size_t>(region.end)];
    if (!region.is_counted || !graph.is_counted(node) || graph.notes.size() >= most_notes) continue;
    const int64_t runs = graph.runs_of(static_cast<int64_t>(i));
    graph.notes.push_back(
        fmt::format("{} {}: {} is counted {}{}", operation_text(node), printable(node.name),
                    node.operation == "If" ? "its " + region.branch : "its body",
                    runs == 1 ? "once" : fmt::format("{} times", runs),
                    region.runs_are_known ? "" : ": the number of its iterations is not known, so 1 is assumed"));
  }
}

}  // namespace

void infer_shapes(OnnxGraph& graph) {
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    if (!graph.is_counted(graph.nodes[i])) continue;
    try {
      infer_node(graph, i);
    } catch (const InputError& error) {
      if (!leave_out_branch(graph, graph.nodes[i], error)) throw;
    }
  }
  choose_branches(graph);
  describe_regions(graph);
}

}  // namespace foretoken
