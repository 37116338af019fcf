// How much calibration helps: constants from some numbers of a deployment, scored on its other numbers.
#pragma once

#include <cstdint>
#include <filesystem>

#include "base/validation.h"
#include "serving/engine/engine_builder.h"
#include "validate/deployment/calibration_validation_request.h"
#include "validate/deployment/run_case.h"
#include "validate/serving/load_stages.h"
#include "validate/serving/vllm_run.h"

namespace foretoken {

class Library;

// Groups are how a number was predicted and which: "1 stage/e2e_ms". Every choice of so many stages of a model predicts
// all others of the model. Stages whose client gave up on requests are skipped. Of points, one of each group predicts
// the others (calibration_points.h).
Validation validate_calibration(const CalibrationValidationRequest& request, const Library& library,
                                const ServingFacts& facts);

// As measured runs, with the engines that served them.
RunCase run_case_of(const StagedRun& run, const Library& library);
RunCase run_case_of(const std::filesystem::path& folder, const Library& library, int64_t first_requests);

}  // namespace foretoken
