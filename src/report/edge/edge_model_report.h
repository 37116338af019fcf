// A network on a CPU or phone: tables for people, JSON for programs, a figure.
#pragma once

#include <string>
#include <vector>

#include "base/json.h"
#include "compose/edge/edge_advice.h"
#include "compose/edge/edge_model.h"
#include "report/step/graph_batches.h"

namespace foretoken {

// What was estimated, with what came out. Looks at its parts, which must outlive it.
struct EdgeModelReport {
  const OnnxGraph& graph;
  const FusionRules& rules;
  const EdgeLowering& lowering;
  const EdgePredictor& predictor;
  const EdgeModelEstimate& estimate;
  EdgeMemory memory;
  int64_t threads = 1;
  std::vector<GraphBatch> batches;
  std::vector<EdgeAdvice> advice;
  std::string device_name = "";  // as it was asked for
};

// Devices may be the same core with other measurements behind them: "Arm Neoverse-V1 (neoverse_v1_ort)".
std::string edge_device_title(const std::string& name, const EdgePredictor& predictor);

// The longest steps: `most` of them, 0 = all in the order they run.
std::string edge_model_text(const EdgeModelReport& report, size_t most);
Json edge_model_json(const EdgeModelReport& report);
// Bars of time by kind, and of the longest steps.
std::string edge_model_svg(const EdgeModelReport& report);
std::string edge_model_html(const EdgeModelReport& report);

}  // namespace foretoken
