// Calibrations of deployments, and runs that are checked against them, for people and for programs.
#pragma once

#include <string>

#include "base/json.h"
#include "validate/deployment/calibrate_deployment.h"
#include "validate/deployment/check_run.h"

namespace foretoken {

std::string calibration_text(const Calibration& calibration);
Json calibration_json(const Calibration& calibration);

std::string run_check_text(const RunCheck& check);
Json run_check_json(const RunCheck& check);
std::string run_check_failure(const RunCheck& check);  // empty where the run agrees

}  // namespace foretoken
