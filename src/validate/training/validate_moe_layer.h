// Compares single layers of routed experts, forward and backward, with what others measured.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/validation.h"
#include "hardware/catalogue.h"
#include "training/runs/training_case.h"
#include "training/training_machine.h"
#include "training/training_stack.h"

namespace foretoken {

// A layer by itself: nothing hides its communication. Columns: case, gpu, n_gpus, seq, micro_batch, hidden, moe_ffn,
// experts, topk, shared_ffn, tp, ep, dispatcher, dtype, forward_ms, backward_ms; experts have two matrices each unless
// a column `gated` is 1. Grouped by pass.
struct MoeLayerRequest {
  std::filesystem::path data;
  TrainingStack stack;               // software whose kernels run
  std::vector<RunCluster> clusters;  // where devices sit
};
struct ScoredMoeLayer {
  std::string_view name, pass;
  double measured_ms = 0, predicted_ms = 0, low_ms = 0, high_ms = 0;
};
using ScoredMoeLayerSink = std::function<void(const ScoredMoeLayer&)>;

Validation validate_moe_layers(const MoeLayerRequest& request, const HardwareCatalogue& hardware,
                               const MachineMaker& make_machine, const ScoredMoeLayerSink& sink = {});

}  // namespace foretoken
