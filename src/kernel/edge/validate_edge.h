// Predicts measured kernels and models of an edge device and says how far off the predictions are.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/validation.h"
#include "kernel/edge/edge_predictor.h"
#include "kernel/edge/edge_rows.h"

namespace foretoken {

// A whole model as its runtime runs it, and what it was measured to take.
struct EdgeModelCase {
  std::string name;
  std::vector<EdgeKernel> kernels;
  double seconds = 0;
};

// One measurement and its prediction. The texts are valid during the call only.
struct ScoredEdge {
  std::string_view group, name, parameters;  // parameters: empty for a model
  size_t row = 0;
  double measured = 0;  // seconds
  Estimate predicted;
};
using ScoredEdgeSink = std::function<void(const ScoredEdge&)>;

// By kind of kernel. A kernel that the predictor does not know is listed as skipped; `file` names where the rows lie.
Validation validate_edge_kernels(const EdgePredictor& predictor, std::span<const EdgeRow> rows, const std::string& file,
                                 const ScoredEdgeSink& sink = {});

// Each model is a group of its own.
Validation validate_edge_models(const EdgePredictor& predictor, std::span<const EdgeModelCase> models,
                                const ScoredEdgeSink& sink = {});

}  // namespace foretoken
