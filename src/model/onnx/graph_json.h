// Graphs that come from elsewhere (torch.fx, torch.export) in a small JSON format of ours (docs/onnx.md):
//   {"format": "foretoken-graph", "version": 1, "name": ..., "opset": 20,
//    "inputs":  [{"name", "type", "shape"}], "constants": [{"name", "type", "shape", "values"}],
//    "nodes":   [{"name", "op", "domain", "inputs": [names], "outputs": [{"name", "type", "shape"}], "attributes":
//    {}}], "outputs": [names]}
// Operators carry ONNX's names where they mean the same; others are costed as traffic of their stated shapes.
#pragma once

#include "base/json.h"
#include "model/onnx/graph.h"

namespace foretoken {

OnnxFile parse_graph_json(const JsonView& document);

}  // namespace foretoken
