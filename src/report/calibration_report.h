// What a fit reached, for people and for programs.
#pragma once

#include <string>

#include "base/json.h"
#include "kernel/fit/fit_calibrations.h"

namespace foretoken {

std::string calibration_summary_text(const CalibrationSummary& summary);
Json calibration_summary_json(const CalibrationSummary& summary);

}  // namespace foretoken
