// What a validation of steps is asked, and what it answers.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/validation.h"
#include "compose/step_spec.h"
#include "compose/sustained_step.h"
#include "kernel/campaign.h"
#include "kernel/learned.h"
#include "validate/steps/layer_conventions.h"

namespace foretoken {

struct StepValidationRequest {
  std::filesystem::path data;                                // a CSV file
  std::vector<std::string> devices, stacks, phases, models;  // only these; empty = all
  std::string group_by;                                      // a column; empty = stack/phase
  double host_factor = 1;                                    // StepSpec::host_factor
  Tier tier = Tier::best;
  // Steps were repeated without pause: the power-limited time is scored. In a table with a column sustained_ms, against
  // that, and rows without it are left out.
  bool sustained = false;
  // For a layer measured by operator: what its table leaves out, and what the host adds on its machine.
  LayerConventions layer;
  Campaign campaign;
};

// One measured step and its prediction. The texts are valid during the call only.
struct ScoredStep {
  std::string_view device, model, stack, group;
  size_t row = 0;  // 1-based data row of the file
  double measured_ms = 0;
  double measured_kernel_ms = 0;   // 0 = not given; never used for the prediction
  const StepSpec* spec = nullptr;  // what was asked
  Estimate seconds;                // what measured_ms is held against
  const StepEstimate* predicted = nullptr;
};

struct StepValidation {
  Validation errors;          // of the whole steps
  ErrorSummary kernels;       // of the kernels' sum, over rows that give kernel_ms
  ErrorSummary gap;           // |predicted gap - measured gap| as a share of the step, over the same rows
  ErrorSummary sustained;     // of sustained_ms, over rows that give it, where a power model was given
  ErrorSummary watts;         // of power_w, likewise
  double verdicts_right = 0;  // percentage of those rows where host-bound or device-bound was told rightly
};

// A measured time beside its prediction.
PredictedRow in_milliseconds(double measured_ms, const Estimate& seconds);

using ScoredStepSink = std::function<void(const ScoredStep&)>;

}  // namespace foretoken
