// Any bytes are either fusion rules that lower a network without losing a node, or an InputError.
#include "compose/edge/edge_lowering.h"
#include "fuzz.h"
#include "model/onnx/test_graphs.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace foretoken;
  static const OnnxGraph graph = transformer_network(1).graph({.bind = {{"batch", 1}}});
  read_or_refuse([&] {
    const FusionRules rules = parse_fusion_rules(as_text(data, size), "input");
    size_t in_steps = 0, to_run = 0;
    for (const EdgeStep& step : lower_edge(graph, rules).steps) in_steps += step.nodes.size();
    for (const OnnxNode& node : graph.nodes) to_run += node.is_folded ? 0 : 1;
    promise(in_steps == to_run, "every node stands in one step");
  });
  return 0;
}
