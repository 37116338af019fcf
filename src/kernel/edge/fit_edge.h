// Prices of an edge device from a sweep of it, with errors from rows that were left out.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/statistics.h"
#include "kernel/edge/edge_predictor.h"
#include "kernel/edge/edge_rows.h"

namespace foretoken {

// What the sweep does not say itself; kept in the predictor.
struct EdgeFitOptions {
  std::string device, runtime, runtime_version, source, date;
  int threads = 1;
  double cache_bytes = 1 << 20;        // of the cache that one core has to itself
  double last_level_bytes = 32 << 20;  // of the cache before memory
  int folds = 5;                       // of the cross-validation
  // Each row is a model of one kernel that was called from outside, its output copied to the caller (ONNX Runtime from
  // Python); else rows are kernels by themselves.
  bool whole_calls = false;
};

struct EdgeFit {
  EdgePredictor predictor;
  std::vector<PredictedRow> left_out;  // each row as predicted without its family of shapes, in the order of the rows
};

// Fits each kind of kernel by itself. Shapes of one family (convolutions of one window, stride and output side;
// products of one k and n; tensors of one size) are left out together. InputError when no rows are given, or no empty
// calls.
EdgeFit fit_edge(std::span<const EdgeRow> rows, const EdgeFitOptions& options);

}  // namespace foretoken
