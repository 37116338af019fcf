// How much calibration helps: constants from some numbers of a deployment, scored on its other numbers.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "base/validation.h"
#include "serving/engine/engine_builder.h"
#include "validate/deployment/run_case.h"
#include "validate/serving/load_stages.h"
#include "validate/serving/vllm_run.h"

namespace foretoken {

class Library;

struct CalibrationValidationRequest {
  std::filesystem::path data;                // a table of load stages (load_stages.h) or points (serving_case.h)
  std::vector<std::filesystem::path> runs;   // or folders of single runs (vllm_run.h)
  std::vector<int64_t> stages = {1, 3};      // to calibrate from
  bool other_models = true;                  // also from all stages of the other models
  int64_t points_per_group = 8;              // of a table of points; 0 = all
  int64_t first_requests = 60;               // of a single run, to calibrate from
  std::vector<std::string> models, devices;  // only these; empty = all
  int64_t threads = 0;
  std::function<void(const std::string&)> tell = {};
};

// Groups are how a number was predicted and which: "1 stage/e2e_ms". Every choice of so many stages of a model predicts
// all others of the model. Stages whose client gave up on requests are skipped. Of points, one of each group predicts
// the others (calibration_points.h).
Validation validate_calibration(const CalibrationValidationRequest& request, const Library& library,
                                const ServingFacts& facts);

// As measured runs, with the engines that served them.
RunCase run_case_of(const StagedRun& run, const Library& library);
RunCase run_case_of(const std::filesystem::path& folder, const Library& library, int64_t first_requests);

}  // namespace foretoken
