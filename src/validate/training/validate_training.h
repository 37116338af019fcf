// Predicts published training runs and says how far off the predictions are.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/validation.h"
#include "training/runs/training_case.h"

namespace foretoken {

struct TrainingValidationRequest {
  std::filesystem::path data;                      // a CSV file of runs
  std::vector<std::string> sources, models, gpus;  // only these; empty = all
  std::string group_by;                            // a column; empty = source
  std::string stack;                               // for all rows; empty = as the source says
};

// One run and its prediction. The texts are valid during the call only.
struct ScoredTraining {
  const TrainingCase* run = nullptr;
  std::string_view stack, group;
  double measured_s = 0;
  const IterationEstimate* predicted = nullptr;
  Bytes memory;      // of a device of the fullest stage
  Bytes allocated;   // of that, what the framework's allocator hands out
  bool fits = true;  // on the device
};
using ScoredTrainingSink = std::function<void(const ScoredTraining&)>;

// Seconds per step; notes say how many runs, all of which ran, are said not to fit, and how far the peak of allocated
// memory is off where rows give it. Measured columns are not looked at before a row is predicted; rows without a time
// are skipped.
Validation validate_training(const TrainingValidationRequest& request, TrainingCaseLibrary& library,
                             const ScoredTrainingSink& sink = {});

}  // namespace foretoken
