// A graph file (ONNX, or our JSON) for people and for programs.
#pragma once

#include <string>

#include "base/json.h"
#include "model/onnx/graph.h"
#include "model/onnx/summary.h"

namespace foretoken {

std::string graph_text(const OnnxGraph& graph, const OnnxSummary& summary);
Json graph_json(const OnnxGraph& graph, const OnnxSummary& summary);

}  // namespace foretoken
