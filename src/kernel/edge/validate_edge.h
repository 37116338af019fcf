// Predicts measured kernels of an edge device and says how far off the predictions are.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/validation.h"
#include "kernel/edge/edge_predictor.h"
#include "kernel/edge/edge_rows.h"

namespace foretoken {

// One measurement and its prediction. The texts are valid during the call only.
struct ScoredEdge {
  std::string_view group, name, parameters;  // parameters: empty for a model
  size_t row = 0;
  double measured = 0;  // seconds
  Estimate predicted;
};
using ScoredEdgeSink = std::function<void(const ScoredEdge&)>;

// Collects predictions and the time they took.
class EdgeScores {
 public:
  explicit EdgeScores(ScoredEdgeSink sink = {}) : sink_(std::move(sink)) {}

  void add(ScoredEdge scored, const std::function<Estimate()>& predict);
  void skip(SkippedRows rows) { skipped_.push_back(std::move(rows)); }
  Validation result() const;

 private:
  ScoredEdgeSink sink_;
  ValidationTally tally_{20e-6};
  std::vector<SkippedRows> skipped_;
};

// By device and kind of kernel. A kernel that the predictor does not know is skipped; `file` names where the rows lie.
void score_edge_kernels(const EdgePredictor& predictor, std::span<const EdgeRow> rows, const std::string& file,
                        EdgeScores& scores);

}  // namespace foretoken
