// Fits the constants that training stacks mark as fitted to published runs, and says how well runs are predicted that a
// fit has not seen.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/validation.h"
#include "training/runs/training_case.h"

namespace foretoken {

struct TrainingFitRequest {
  std::filesystem::path stacks;       // folder of stack files
  std::vector<std::string> only;      // runs of these stacks; empty = all
  int64_t folds = 5;                  // of the cross-validation; runs of one configuration are in one fold
  bool folds_by_model = false;        // so are all runs of a model by a source
  int64_t most_rows_of_source = 150;  // evenly chosen, so that large tables do not take longer than they help
  double prior = 0.001;               // weight of a constant's squared log distance from what it is taken for
  std::string date;                   // of the fit, for the files of stacks with runs; empty = they keep theirs
  unsigned threads = 0;               // 0 = as many as the machine runs at once; the result is the same for any number
};

struct FittedStack {
  std::string name;
  Json file;        // with the fitted values and the interval
  size_t runs = 0;  // it stands for
  std::optional<RunInterval> interval, experts_interval, tuning_interval;
};

// A run with what the fit to all runs says of it, and the fit that has not seen its configuration.
struct FittedRun {
  std::string id, source, stack;
  double measured_s = 0, seen_s = 0, unseen_s = 0;
};

struct TrainingFit {
  Validation seen;    // errors of runs that the constants were fitted to, by source
  Validation unseen;  // cross-validated
  std::vector<FittedStack> stacks;
  std::vector<FittedRun> runs;
  size_t constants = 0;
};

using FitProgress = std::function<void(const std::string& stage)>;

// Deterministic. Coordinate by coordinate: the sum over sources of the mean |log error| and the prior falls with each
// change; constants are the geometric means of a few such walks. A constant that a stack inherits is fitted to the runs
// of all stacks that share it.
TrainingFit fit_training(const TrainingFitRequest& request, const TrainingCaseLibrary& library,
                         std::vector<TrainingCase> cases, const FitProgress& progress = {});

}  // namespace foretoken
