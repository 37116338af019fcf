// Predicts measured whole models of an edge device from their ONNX files.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "compose/edge/fusion_rules.h"
#include "kernel/edge/validate_edge.h"

namespace foretoken {

struct EdgeModelRow {
  size_t row = 0;  // 1-based data row of the file
  std::string model;
  double seconds = 0;
};

// A table with the columns `model` and `cpu_ms_min`.
std::vector<EdgeModelRow> read_edge_model_rows(const std::filesystem::path& path);

// Each from `folder`/<model>.onnx, a symbolic batch taken as 1. A model without a file is skipped. All are in one
// group of the device.
void score_edge_models(const EdgePredictor& predictor, const FusionRules& rules, const std::filesystem::path& path,
                       const std::filesystem::path& folder, EdgeScores& scores);

}  // namespace foretoken
