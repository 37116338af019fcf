// Control flow: its body stands between the node that begins it and the node that ends it. The first gives the body
// its inputs, the second takes the body's outputs as its inputs.
#include <algorithm>

#include <fmt/format.h>

#include "model/onnx/operators/rules.h"

namespace foretoken::onnx_rules {
namespace {

// Regions whose first or last node this is.
std::vector<int64_t> regions_of(const NodeInference& node) {
  const OnnxGraph& graph = node.graph();
  const auto index = static_cast<int64_t>(&node.node() - graph.nodes.data());
  std::vector<int64_t> regions;
  for (size_t i = 0; i < graph.regions.size(); ++i) {
    if (graph.regions[i].begin == index || graph.regions[i].end == index) regions.push_back(static_cast<int64_t>(i));
  }
  return regions;
}

// The node that begins the body this one ends, or begins itself.
const OnnxNode& begin_of(const NodeInference& node) {
  const std::vector<int64_t> regions = regions_of(node);
  if (regions.empty()) node.fail("no body", "a graph as its attribute");
  const OnnxRegion& region = node.graph().regions[static_cast<size_t>(regions[0])];
  return node.graph().nodes[static_cast<size_t>(region.begin)];
}

bool is_counted(const NodeInference& node, int64_t region) {
  return node.graph().regions[static_cast<size_t>(region)].is_counted;
}

bool is_only_branch(const NodeInference& node, const std::vector<int64_t>& regions) {
  return std::count_if(regions.begin(), regions.end(), [&](int64_t region) { return is_counted(node, region); }) == 1;
}

void copy(NodeInference& node, size_t output, size_t input) {
  node.output(output, node.type(input), node.dims(input));
}

// How often a loop runs, where its node says so: a condition may end it before.
std::optional<int64_t> constant_trips(const OnnxNodeView& begin) {
  const std::optional<int64_t> trips = begin.integer(0);
  return trips && *trips >= 0 && *trips < most_onnx_elements ? trips : std::nullopt;
}

}  // namespace

void branch(NodeInference& node) {
  const std::vector<int64_t> regions = regions_of(node);
  if (node.node().control == OnnxControl::begin) {
    const std::optional<int64_t> condition = node.integer(0);
    if (!condition) return;
    for (const int64_t region : regions) {
      const bool is_then = node.graph().regions[static_cast<size_t>(region)].branch == "then_branch";
      if (is_then != (*condition != 0)) node.leave_out(region);
    }
    return;
  }
  // Inputs: the outputs of one branch after those of the other. Those of a branch that is left out have no shape.
  const size_t results = node.outputs();
  if (node.inputs() != results * regions.size()) {
    node.fail(fmt::format("{} results of its branches", node.inputs()), fmt::format("{} each", results));
  }
  for (size_t i = 0; i < regions.size(); ++i) {
    if (!is_counted(node, regions[i])) continue;
    for (size_t output = 0; output < results; ++output) {
      const size_t input = i * results + output;
      copy(node, output, input);
      if (!is_only_branch(node, regions)) continue;
      if (node.values(input) != nullptr) node.set_values(output, *node.values(input));
      if (node.input(input).is_constant) node.constant(output);
    }
    return;
  }
}

// Begin: trip count, condition, carried values -> iteration, condition, carried values.
// End: condition, carried values, what is collected -> carried values, what was collected, one row a run.
void loop(NodeInference& node) {
  if (node.node().control == OnnxControl::begin) {
    for (const int64_t region : regions_of(node)) node.set_runs(region, constant_trips(node));
    node.output(0, OnnxType::int64, {});
    node.output(1, OnnxType::boolean, {});
    for (size_t i = 2; i < node.outputs(); ++i) {
      if (node.has(i)) copy(node, i, i);
    }
    return;
  }
  const OnnxNode& begin = begin_of(node);
  const size_t carried = begin.outputs.size() < 2 ? 0 : begin.outputs.size() - 2;
  const int64_t trips = constant_trips(OnnxNodeView(node.graph(), begin)).value_or(1);
  for (size_t i = 0; i < node.outputs() && i + 1 < node.inputs(); ++i) {
    OnnxDims dims = node.dims(i + 1);
    if (i >= carried) dims.insert(dims.begin(), trips);
    node.output(i, node.type(i + 1), std::move(dims));
  }
}

// Begin: carried values, then sequences -> carried values, one element of each sequence along its first axis.
// End: carried values, then results -> the same, results with one row for each element.
void scan(NodeInference& node) {
  const auto sequences = static_cast<size_t>(std::clamp<int64_t>(node.attribute("num_scan_inputs", 0), 0, 1 << 20));
  const OnnxNode& begin = begin_of(node);
  if (begin.inputs.size() < sequences) node.fail(fmt::format("{} scan inputs", sequences), "as many inputs");
  const size_t carried = begin.inputs.size() - sequences;
  const OnnxNodeView before(node.graph(), begin);
  const bool has_length = sequences > 0 && before.rank(carried) > 0;
  const int64_t length = has_length ? before.dims(carried)[0] : 1;
  if (node.node().control == OnnxControl::begin) {
    for (const int64_t region : regions_of(node))
      node.set_runs(region, has_length ? std::optional(length) : std::nullopt);
    for (size_t i = 0; i < node.outputs() && i < node.inputs(); ++i) {
      OnnxDims dims = node.dims(i);
      if (i >= carried && !dims.empty()) dims.erase(dims.begin());
      node.output(i, node.type(i), std::move(dims));
    }
    return;
  }
  for (size_t i = 0; i < node.outputs() && i < node.inputs(); ++i) {
    OnnxDims dims = node.dims(i);
    if (i >= carried) dims.insert(dims.begin(), length);
    node.output(i, node.type(i), std::move(dims));
  }
}

}  // namespace foretoken::onnx_rules
