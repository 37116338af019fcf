// A network's graph on a GPU: its time by node and by kind of operator.
#pragma once

#include <string>
#include <vector>

#include "base/json.h"
#include "compose/step_estimate.h"
#include "hardware/device.h"
#include "model/onnx/graph.h"
#include "report/step/graph_batches.h"

namespace foretoken {

struct GraphRunReport {
  const OnnxGraph& graph;
  const Device& device;
  const StageEstimate& run;
  std::vector<GraphBatch> batches;
};

// The longest `most` nodes; 0 = all.
std::string graph_run_text(const GraphRunReport& report, size_t most);
Json graph_run_json(const GraphRunReport& report);
std::string graph_run_html(const GraphRunReport& report);  // one page: bars of the longest nodes, and all of them

}  // namespace foretoken
